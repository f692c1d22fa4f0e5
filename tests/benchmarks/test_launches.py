"""The benchmark of launches counts equal work in two forms, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import launches, record

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_both_forms_are_counted_and_the_docs_have_a_place_for_them(tmp_path: Path, capsys) -> None:
    launches.main(["--quick", "--json", str(tmp_path / "found.json")])
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "found.json").read_text())
    assert document["command"] == "python -m benchmarks.launches --quick"
    assert [job["job"].split(",")[0] for job in document["jobs"]] == [
        *("training", "Apollo's search", "YOQO", "boundary walks", "HopSkipJump"),
    ]
    for job in document["jobs"]:
        assert 0 < job["at once"]["launches"] < job["one by one"]["launches"]
        assert job["largest_difference"] <= launches.TOLERANCE
    record.replace_section((ROOT / "docs" / "results" / "benchmarks.md").read_text(), "launches", "")


def test_forms_that_differ_are_not_counted() -> None:
    job = launches.Job("x", lambda: torch.zeros(2), lambda: torch.ones(2), "job", 1)
    with pytest.raises(SystemExit, match="x: the two forms differ by 1"):
        launches.counted(job, launches.Counts())


@pytest.mark.parametrize("options", [["--models", "1"], ["--points", "0"]])
def test_odd_sizes_are_refused(options: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        launches.main(options)
    assert stopped.value.code == 2 and " ".join(options) in capsys.readouterr().err

"""What checkpoints cost a training is measured on checkpoints that were really written and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import checkpoints
from benchmarks.record import markers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_the_record_has_a_file_of_each_optimiser(capsys: pytest.CaptureFixture[str]) -> None:
    checkpoints.main(["--quick"])
    record = json.loads(capsys.readouterr().out)
    assert record["command"] == "python -m benchmarks.checkpoints --quick"
    sgd, adamw = record["optimizers"]
    assert sgd["bytes"] * 1.3 < adamw["bytes"] < sgd["bytes"] * 1.6  # two moments a weight in the place of one
    assert all(each[name] > 0 for each in (sgd, adamw) for name in ("step", "writing", "reading", "asking"))
    assert "| adamw |" in checkpoints.tables(record)
    assert markers(record["section"])[0] in (ROOT / "docs" / "results" / "benchmarks.md").read_text()


def test_options_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        checkpoints.main(["--repeats", "0"])
    assert "give 1 or more" in capsys.readouterr().err

"""``orch doctor`` and ``orch data``: what is there, what is not, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder with no store named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)


def test_data_are_listed_and_sharded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "ls", "--json"]) == 0
    states = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states["fashion14"] == "present"
    assert main(["data", "ls"]) == 0
    assert main(["data", "shard", "digits", "out", "--points", "1000"]) == 0
    assert len(list(Path("out").iterdir())) == 2
    assert main(["data", "shard", "digits", "out"]) == 2
    assert main(["validate", "apollo-smoke", "--set", "data.name=parquet:out"]) == 0


def test_groups_of_duplicates_are_written_for_plans(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "duplicates", "digits", "groups.csv"]) == 0
    assert " of 1797 points have copies, in " in capsys.readouterr().out
    assert main(["validate", "apollo-smoke", "--set", "data.groups=groups.csv"]) == 0
    assert main(["data", "duplicates", "digits", "absent/groups.csv"]) == 2
    assert "absent/groups.csv cannot be written" in capsys.readouterr().err


def test_doctor_names_what_is_wrong_and_the_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert {"Python", "torch", "Ray", "CPUs", "memory", "store", "output", "data", "tracking"} <= {
        finding["subject"] for finding in findings
    }
    Path("file").touch()
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:/somewhere")
    assert main(["doctor", "--out", "file/x"]) == 3
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert len(failed) == 2
    assert all("→" in line for line in failed)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["doctor", "--out", "file/x"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert {line[:6] for line in lines} == {"ok    ", "warn  ", "FAIL  ", "      "}
    paths = (str(Path.cwd()), "http", "/")
    assert all(len(line) <= 80 or any(path in line for path in paths) for line in lines)

"""The loss curves of one worker and of two come from trainings that really ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import teams
from benchmarks.record import markers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_the_record_has_curves_that_agree_up_to_rounding(capsys: pytest.CaptureFixture[str]) -> None:
    teams.main(["--quick"])
    record = json.loads(capsys.readouterr().out)
    assert record["command"] == "python -m benchmarks.teams --quick"
    exact = record["curves"]["float64"]
    assert len(exact[teams.ONE]["losses"]) == 2
    assert max(teams.farthest(exact, name) for name in (teams.TURNED, teams.TWO)) < 1e-6
    assert teams.farthest(exact, teams.APART) > 1e-3
    assert "| float32 | two workers |" in teams.tables(record)
    assert markers(record["section"])[0] in (ROOT / "docs" / "results" / "benchmarks.md").read_text()


def test_options_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        teams.main(["--points", "0"])
    assert "give 1 or more" in capsys.readouterr().err

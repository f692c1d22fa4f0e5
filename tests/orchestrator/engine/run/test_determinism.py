"""The result of a plan does not depend on who does which job: scores are compared bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.kept import finished
from tests.cases.runs import take_turns
from tests.cases.smallest_plans import smallest_plan
from tests.orchestrator.engine.run.small_plans import SMALL, scores

OTHERS = [kind for kind in SMALL if kind != "apollo"]
"""Kinds of audits other than that whose run is disturbed in ``test_killed_driver.py``."""


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind != "mia")) for kind in OTHERS])
def test_scores_do_not_depend_on_who_does_which_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    alone = (finished(kind) / "scores.parquet").read_bytes()
    take_turns(monkeypatch)
    plan = smallest_plan(kind, tmp_path / "store", **{"compute.workers": 2})
    assert scores(plan, tmp_path / "out") == alone

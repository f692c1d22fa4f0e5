"""``orch verify`` on a run of each kind: every artefact that a stage makes is made again with the same values."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.engine.run.attempts import FAILED
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.verifying import verify
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named
from tests.cases.runs import audited
from tests.cases.smallest_plans import GIVEN, SMALLEST, smallest_plan

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", [*SMALLEST, *GIVEN])
def test_every_artefact_of_a_run_is_made_again_with_the_same_values(name: str, tmp_path: Path) -> None:
    plan = smallest_plan(name, tmp_path / "store")
    audited(plan, tmp_path / "out")
    kind = kind_named(plan.kind)
    found = verify(kind, plan, plan.settings(), Terminal(json=True), sample=10**6, seed=0)
    made = {stage: count for stage, count in found.of.items() if kind.stage(stage).makes != "given"}
    failed = sum(FAILED in each.files for each in Store(str(tmp_path / "store")).artefacts())
    assert len(found.verified) == sum(made.values()) - failed > 0
    assert [(each.stage, each.differences) for each in found.unlike] == []

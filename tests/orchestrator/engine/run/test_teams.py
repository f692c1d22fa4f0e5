"""Jobs of plans whose models several workers make: who does them, and that nobody does them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.errors import BadInput
from audits.training.team import ALONE, Team
from orchestrator.engine.store.store import Store
from tests.cases.runs import context_of, jobs_of
from tests.cases.smallest_plans import smallest_plan

PAIR = {"compute.workers": 2, "compute.workers_per_model": 2}


def test_models_are_made_by_all_and_everything_else_by_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    plan = smallest_plan("apollo", tmp_path, **PAIR, **{"compute.sync_batch_norm": False})
    context = context_of(plan, store)
    context.mates = Team(1, 2)
    teams = {job.stage: context.team_of(job) for job in jobs_of(plan, store=store)}
    apart = Team(1, 2, sync_batch_norm=False)
    assert teams["train"] == teams["unlearn"] == apart
    assert {teams[stage] for stage in teams.keys() - {"train", "unlearn", "own_start"}} == {ALONE}


def test_no_process_makes_alone_what_the_key_says_several_made(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    plan = smallest_plan("mia", tmp_path, **PAIR)
    with pytest.raises(BadInput, match=r"workers_per_model is 2, but a model is to be made by 1 worker\(s\)"):
        context_of(plan, store).perform(jobs_of(plan, "train", store=store)[0])
    assert not store.keys("train")

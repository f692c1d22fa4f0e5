"""Plans that watch models for their points' exposure: keys, estimates, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from audits.errors import BadInput
from audits.models import MODELS
from orchestrator.engine.cost import timing as probe
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.jobs.code_version import reached
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.kinds import check_against_data, kind_named, load_plan, open_design
from tests.cases.runs import jobs_of
from tests.orchestrator.apollo.test_pipeline import tiny_plan

EXPOSED = ("split.points=exposed", "split.ranking_models=2")
PRIVATE = ("recipe.noise_multiplier=1.0", "recipe.max_grad_norm=1.0")


def test_what_decides_a_ranking_is_in_its_key(tmp_path: Path):
    def key(*overrides: str) -> str:
        return open_design(tiny_plan(tmp_path, *overrides)).rank_job().key

    keys = [
        key(*EXPOSED),
        key("split.points=memorised", "split.ranking_models=4"),
        key(*EXPOSED, "recipe.epochs=4"),
        key(*EXPOSED, "compute.chunk=64"),
        key(*EXPOSED, "seed=1"),
        key("split.points=exposed", "split.ranking_models=1", "split.candidates={forget: 12, unseen: 12}"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(*EXPOSED, "audit.fpr=[0.6]") == keys[0]


def test_a_ranking_by_memorisation_does_not_depend_on_how_models_are_watched():
    reach = {stage.name: set(reached((stage.body.__module__,))) for stage in kind_named("apollo").stages}
    watching = {"audits.uniqueness.ridge", "audits.uniqueness.watching", "orchestrator.apollo.stages.watching"}
    assert not watching & reach["rank"]
    assert watching <= reach["expose"] and watching <= reach["disclosure"]


def test_the_estimate_counts_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probe, "time_steps", lambda *_: (1.0, 1000))
    monkeypatch.setattr(probe, "JOB_SECONDS", 0.0)
    plan = tiny_plan(tmp_path / "store", *EXPOSED, "audit.disclosure=true")
    costs = {stage.stage: stage for stage in estimate(kind_named("apollo"), plan).stages}
    jobs = jobs_of(plan.changed({"split.points": "random"}), "train")
    assert costs["train"].needed == len(jobs)
    assert (costs["expose"].needed, costs["disclosure"].needed) == (1, plan.split.targets)
    batches, looks = 2, 9
    one = batches * (plan.recipe.epochs + 4 * looks)
    assert costs["disclosure"].unit_seconds == one and costs["expose"].unit_seconds == 2 * one


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ([*EXPOSED, *PRIVATE], "split.points is exposed, but recipe is private"),
        (["audit.disclosure=true", *PRIVATE], "audit.disclosure is true, but recipe is private"),
        (
            ["split.points=exposed", "split.forget={classes: [1]}"],
            "split.points is exposed, but split.forget says which",
        ),
        (
            ["split.points=exposed", "split.ranking_models=1"],
            "800 candidates .* more than the 500 points that are ranked",
        ),
        (["split.points=exposd"], "split.points is .*'exposed'"),
        (["audit.disclosure=1"], "audit.disclosure is 1"),
    ],
)
def test_plans_that_cannot_be_watched_are_refused(overrides: list[str], says: str):
    with pytest.raises(PlanProblems, match=says):
        load_plan(None, overrides)


def test_a_choice_from_few_exposed_points_is_warned_of():
    few, many = (load_plan(None, ["split.points=exposed", f"split.ranking_models={count}"]) for count in (3, 32))
    assert any("53% of the 1500 ranked points, hardly more exposed" in line for line in few.warnings)
    assert many.warnings == ()


def test_an_architecture_whose_points_mix_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch):
    def mixing(self, shape, classes, seed):
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.BatchNorm1d(64, track_running_stats=False), torch.nn.Linear(64, classes)
        )

    monkeypatch.setattr(MODELS["mlp"], "build", mixing)
    check_against_data(load_plan("apollo-smoke"))
    with pytest.raises(BadInput, match="without running statistics"):
        check_against_data(load_plan("apollo-smoke", ["audit.disclosure=true"]))

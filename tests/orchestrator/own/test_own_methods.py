"""Unlearning methods and attacks of users' own in plans: what they may be, and what their source decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from audits.apollo.attacks import ATTACKS
from audits.errors import BadInput
from audits.gnq.attacks import POOL_ATTACKS
from audits.tmia.attacks import ATTACKS as TMIA
from audits.unlearning import UNLEARNERS, make_unlearner
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.store.store import Store
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import kind_named, load_plan, open_design
from tests.audits.unlearning.cases import FORGET, RETAIN, Snapshot, build, points, same_state, trained
from tests.cases.own_components import edit, own_plan
from tests.cases.runs import audited
from tests.cases.smallest_plans import smallest_plan


def jobs(plan: BasePlan) -> dict[tuple[str, ...], Job]:
    """Return the jobs of a plan by their place."""
    found = open_design(plan).jobs()
    return {(job.stage, job.member, job.label, job.kind, str(job.shadow_set), str(job.shard)): job for job in found}


def changed(one: dict[tuple[str, ...], Job], two: dict[tuple[str, ...], Job]) -> set[tuple[str, str]]:
    """Return stage and label of the jobs that have other keys."""
    assert one.keys() == two.keys()
    return {(job.stage, job.label) for place, job in one.items() if two[place].key != job.key}


@pytest.mark.long
def test_an_edit_of_a_method_has_new_keys_for_what_follows_it_and_one_of_an_attack_for_scores(
    folder: Path, tmp_path: Path
) -> None:
    """In short: ``test_own_models.py``, of an edit of a model."""
    first = jobs(own_plan(tmp_path))
    edit(folder / "rates.py", "1.0", "0.5")
    second = jobs(own_plan(tmp_path))
    assert changed(first, second) == {(stage, "forget") for stage in ("unlearn", "utility", "search", "score")}
    edit(folder / "attacking.py", "score = ", "score = 2 * ")
    assert {stage for stage, _ in changed(second, jobs(own_plan(tmp_path)))} == {"score"}


@pytest.mark.long
def test_an_edit_of_a_method_trains_nothing_and_redoes_what_follows_it(folder: Path, tmp_path: Path) -> None:
    plan = own_plan(tmp_path / "store")
    assert [entry.label for entry in plan.unlearning] == ["identity", "gradient_ascent", "forget", "retrain"]
    first = audited(plan, tmp_path / "out")
    assert set(first.scores["unlearner"].to_pylist()) == {entry.label for entry in plan.unlearning}
    assert "python:attacking:Margin" in first.scores["attack"].to_pylist()
    before = jobs(plan)
    edit(folder / "rates.py", "1.0", "0.5")
    again = own_plan(tmp_path / "store")
    after = jobs(again)
    assert changed(before, after) == {(stage, "forget") for stage in ("unlearn", "utility", "search", "score")}
    store = Store(tmp_path / "store")
    stored = {stage: store.keys(stage) for stage in ("train", "unlearn")}
    second = audited(again, tmp_path / "out")
    assert store.keys("train") == stored["train"]
    new = {job.key for job in after.values() if (job.stage, job.label) == ("unlearn", "forget")}
    assert store.keys("unlearn") - stored["unlearn"] == new
    same = [name != "forget" for name in first.scores["unlearner"].to_pylist()]
    assert second.scores.filter(same).equals(first.scores.filter(same)) and not second.scores.equals(first.scores)


def test_a_gate_names_an_attack_of_ones_own(folder: Path, tmp_path: Path) -> None:
    plan, headline = own_plan(tmp_path), kind_named("apollo").headline
    gates = gates_of(["forget.python:attacking:Margin.auc=0.6"], headline, plan)
    assert gates[0].place == ("forget", "python:attacking:Margin")
    row = {"unlearner": "forget", "attack": "python:attacking:Margin", "access": "posteriors", "auc": 0.7}
    assert "auc is 0.700" in failures(gates, headline, plan, {"plan": plan.resolved(), "table": [row]})[0]


def test_a_function_unlearns_and_leaves_what_it_was_given(folder: Path) -> None:
    (folder / "spoiling.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def spoil(model, original, forget, retain, seed):\n    with torch.no_grad():\n"
        "        for parameter in [*original.parameters(), *model.parameters()]:\n            parameter.zero_()\n"
        "def draws(model, forget, seed):\n    with torch.no_grad():\n"
        "        for parameter in model.parameters():\n            parameter.add_(torch.rand(()))\n    return model\n"
        "def other(model):\n    return nn.Linear(2, 2)\n"
        "def nothing(model):\n    return 3\n"
    )
    model = trained()
    before = Snapshot(model)
    sets: dict[str, Any] = {"forget": points(FORGET, 1), "retain": points(RETAIN, 2)}
    spoilt = make_unlearner("python:spoiling:spoil", {}).unlearn(model, **sets, seed=0, build=build)
    before.assert_unchanged()
    assert not any(value.any() for value in spoilt.parameters()) and not spoilt.training
    draws = make_unlearner("python:spoiling:draws", {})
    state = torch.get_rng_state()
    found = [draws.unlearn(model, **sets, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), state)
    assert same_state(found[0], found[1]) and not same_state(found[0], found[2])
    assert draws.reads_forget and not draws.reads_retain
    with pytest.raises(BadInput, match="returned a model with"):
        make_unlearner("python:spoiling:other", {}).unlearn(model, **sets, seed=0)
    with pytest.raises(BadInput, match="returned int"):
        make_unlearner("python:spoiling:nothing", {}).unlearn(model, **sets, seed=0)


CLASSES = """
from dataclasses import dataclass
from audits.apollo import Attack
from audits.gnq.attacks.base import PoolAttack
from audits.tmia.attacks.base import Attack as TmiaAttack
from audits.unlearning import Unlearner
@dataclass(frozen=True)
class NoFind(Attack):
    access = "labels"
    reads = ("apollo",)
class Unsettled(Unlearner):
    rate: float = 0.1
    def _update(self, task):
        return task.student
class Whole(NoFind):
    def find(self, evidence):
        raise RuntimeError
class OddAccess(Whole):
    access = "everything"
class TooMuch(Whole):
    reads = ("posteriors",)
class Unknown(Whole):
    reads = ("posterior",)
class Scores(PoolAttack):
    access = "labels"
    def scores(self, targets, shadows, labels, group, seed):
        raise RuntimeError
class Reader(TmiaAttack):
    access = "labels"
    reads = ("distances",)
    def find(self, view, settings, seed):
        raise RuntimeError
"""


@pytest.mark.parametrize(
    ("table", "name", "says"),
    [
        (ATTACKS, "NoFind", "has no find; audits.apollo.attacks.base.Attack needs it"),
        (ATTACKS, "Scores", "is Scores; needed: a class derived from audits.apollo.attacks.base.Attack"),
        (ATTACKS, "OddAccess", "has access 'everything'; allowed: labels, posteriors"),
        (ATTACKS, "TooMuch", "reads 'posteriors', which takes access 'posteriors', but has access 'labels'"),
        (ATTACKS, "Unknown", "reads 'posterior' .did you mean 'posteriors'"),
        (POOL_ATTACKS, "Scores", "has access 'labels'; allowed: posteriors, white_box"),
        (TMIA, "Reader", "has reads .'distances',.; allowed: a tuple of distance"),
        (UNLEARNERS, "Unsettled", "has settings .rate. but is no dataclass; put @dataclass"),
        (UNLEARNERS, "NoFind", "is NoFind; needed: a class derived from audits.unlearning.base.Unlearner"),
    ],
)
def test_classes_that_cannot_take_part_are_refused_in_a_line(folder: Path, table: Any, name: str, says: str) -> None:
    (folder / "classes.py").write_text(CLASSES)
    with pytest.raises(BadInput, match=says) as caught:
        table[f"python:classes:{name}"]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "known"), [("apollo", "lira"), ("tmia", "rmia"), ("gnq", "lira")])
def test_a_plan_says_which_attack_cannot_be_used(folder: Path, tmp_path: Path, kind: str, known: str) -> None:
    with pytest.raises(BadInput, match=r"audit\.attacks\.1: python:classes:Missing: .*No module named 'classes'"):
        smallest_plan(kind, tmp_path, **{"audit.attacks": [known, "python:classes:Missing"]})


def test_settings_of_a_method_are_checked_before_anything_runs(folder: Path) -> None:
    methods = [{"method": "identity"}, {"method": "python:forgetting:forget", "factr": 1.0}]
    with pytest.raises(BadInput, match=r"unlearning\.1\.factr is not a field .did you mean 'factor'"):
        load_plan("apollo-smoke", values={"unlearning": methods})

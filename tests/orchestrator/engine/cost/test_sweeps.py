"""``orch cost --sweep``: the work of all settings of a sweep, what they share once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.apollo.cost import ApolloProbe
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.cli.main import main
from orchestrator.engine.cost import timing as probe
from orchestrator.engine.cost.estimate import Cost, estimate
from orchestrator.engine.jobs.job import keys_by_stage, of_stage
from orchestrator.engine.run.choice import choice_of
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan, open_design
from tests.cases.runs import jobs_of
from tune_spaces import SWEEPS
from tune_spaces.registry import Sweep, fixed

APOLLO = kind_named("apollo")
BYTES = 1000
ONE = ("split.targets=1", "audit.fpr=[0.5]")
"""Jobs of more targets take longer to lay out."""
ONE_IN_WORDS = [word for change in ONE for word in ("--set", change)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder with no store named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)


@pytest.fixture(autouse=True)
def timed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let a step of an MLP take one second, any other model's a hundred, and a job nothing beside its work.

    Returns the models that were timed, those with a batch of their recipe alone.
    """
    models: list[str] = []

    def time_steps(plan: ApolloPlan, model, recipe, device: str) -> tuple[float, int]:
        if recipe.batch_size in (plan.recipe.batch_size, (plan.shadow_recipe or plan.recipe).batch_size):
            models.append(model.name)
        return 1.0 if model.name == "mlp" else 100.0, BYTES

    monkeypatch.setattr(probe, "time_steps", time_steps)
    monkeypatch.setattr(probe, "JOB_SECONDS", 0.0)
    return models


def plans_of(name: str, plan: ApolloPlan) -> list[ApolloPlan]:
    """Return the plan of every setting of a sweep."""
    return [plan.changed(changes) for changes in SWEEPS[name].settings(plan.resolved()).values()]


def few_of(name: str, plan: ApolloPlan, settings: Sequence[str]) -> Sweep:
    """Return a sweep with few of its settings: each has to be laid out."""
    found = SWEEPS[name].settings(plan.resolved())
    return replace(SWEEPS[name], varies=fixed({setting: found[setting] for setting in settings}))


def needed(cost: Cost) -> dict[str, int]:
    """Return the units that each stage needs."""
    return {stage.stage: stage.needed for stage in cost.stages}


def test_a_sweep_costs_the_union_of_its_settings(capsys: pytest.CaptureFixture[str], timed: list[str]) -> None:
    plan = load_plan("apollo-smoke", ONE)
    plans = plans_of("apollo-ablation", plan)
    keys: dict[str, set[str]] = {}
    for each in plans:
        for stage, found in keys_by_stage(jobs_of(each)).items():
            keys.setdefault(stage, set()).update(found)
    store = Store("store")
    for job in jobs_of(plan, "train"):
        store.put("train", job.key, job.document, {"m.json": b"{}"}, seconds=7.0)
    assert (
        main(["cost", "apollo-smoke", *ONE_IN_WORDS, "--sweep", "apollo-ablation", "--store", "store", "--json"]) == 0
    )
    cost = json.loads(capsys.readouterr().out)
    assert (cost["sweep"], cost["settings"]) == ("apollo-ablation", len(plans))
    assert {stage["stage"]: stage["needed"] for stage in cost["stages"]} == {
        stage: len(found) for stage, found in keys.items()
    }
    train, unlearn, *_ = cost["stages"]
    assert (train["missing"], unlearn["missing"]) == (0, len(jobs_of(plan, "unlearn")))
    assert timed == ["mlp"], "settings that share a model share its probe"


def test_queries_are_counted_for_settings_that_ask_anew() -> None:
    plan = load_plan("apollo-smoke", ONE)
    alone = {entry.attack: entry for entry in estimate(APOLLO, plan).queries}
    sweep = few_of("apollo-ablation", plan, ("base", "m=4", "T=1"))
    swept = {entry.attack: entry for entry in estimate(APOLLO, plan, sweep).queries}
    plans = [plan.changed(changes) for changes in sweep.settings(plan.resolved()).values()]
    shadows = {each.audit.search.shadows for each in plans}
    assert swept["label_gap"].per_target == len(shadows) * alone["label_gap"].per_target, "it reads no other setting"
    steps = [each.audit.search.steps for each in plans]
    asked = plan.split.candidates.forget + plan.split.candidates.unseen
    assert swept["apollo"].per_target == asked * sum(4 * count + 1 for count in steps), "two ways in each half"
    models = plan.split.targets * len(plan.unlearning)
    assert swept["apollo"].total == swept["apollo"].per_target * models
    assert alone["apollo"].total == alone["apollo"].per_target * models


def test_settings_of_other_targets_add_to_the_queries_but_not_to_those_of_one_target() -> None:
    plan = load_plan("apollo-smoke", ONE)
    alone = {entry.attack: entry for entry in estimate(APOLLO, plan).queries}
    seeds = [*SWEEPS["apollo-seeds"].settings(plan.resolved())][:2]
    for entry in estimate(APOLLO, plan, few_of("apollo-seeds", plan, seeds)).queries:
        assert entry.per_target == alone[entry.attack].per_target
        assert entry.total == 2 * alone[entry.attack].total


def test_a_sweep_of_utilities_makes_targets_only() -> None:
    plan = load_plan("apollo-smoke", ["split.targets=2", *ONE[1:]])
    few = [*SWEEPS["unlearning-presets"].settings(plan.resolved())][:3]
    cost = estimate(APOLLO, plan, few_of("unlearning-presets", plan, few))
    targets, settings = plan.split.targets, len(few)
    assert needed(cost) == {
        "train": targets,
        "unlearn": targets * (settings + 1),  # each setting's own, and the retrained ones of all
        "utility": targets * (settings + 2),
    }
    assert cost.queries == ()


def test_points_that_are_not_yet_ranked_are_not_taken_for_random_ones() -> None:
    plan = load_plan("apollo-smoke", ["split.ranking_models=4", *ONE])
    jobs = jobs_of(plan)
    store = Store("store")
    for job in jobs:
        store.put(job.stage, job.key, job.document, {"m.json": b"{}"}, seconds=1.0)
    base = plan.changed({"compute.store": "store"})
    memorised = estimate(APOLLO, base.changed({"split.points": "memorised"}))
    assert needed(memorised)["train"] == len(of_stage(jobs, "train")) + 4
    assert all(stage.reused == 0 for stage in memorised.stages)
    settings = fixed({"random": {}, "memorised": {"split.points": "memorised"}})
    both = estimate(APOLLO, base, Sweep("points", "", "apollo-smoke", settings, "apollo AUC", ""))
    assert needed(both) == {**{k: v + len(of_stage(jobs, k)) for k, v in needed(memorised).items()}, "rank": 1}
    assert {stage.stage: stage.reused for stage in both.stages} == {
        stage: len(of_stage(jobs, stage)) for stage in needed(both)
    }


def test_shadows_of_another_architecture_are_timed_as_such(timed: list[str]) -> None:
    plan = load_plan("apollo-smoke", ["shadow_model={name: cnn}", "shadow_recipe={epochs: 3}", "recipe.epochs=2"])
    guess = ApolloProbe(plan, "cpu")
    by_role = {job.member.startswith("target"): job for job in jobs_of(plan, "train")}
    target, shadow = guess.seconds(by_role[True]), guess.seconds(by_role[False])
    assert shadow / target == pytest.approx(100 * 3 * steps(plan, "shadow_recipe") / (2 * steps(plan, "recipe")))
    walk = next(job for job in jobs_of(plan, "search") if job.kind == "apollo")
    steps_of_all = 2 * plan.audit.search.steps * plan.split.shadows  # a few candidates at a time, as long as a step
    asked = (plan.split.shadows + 2) * 2 * plan.audit.search.steps * walk.document["count"]
    assert guess.seconds(walk) == pytest.approx(100 * (steps_of_all + asked / 3 / plan.shadow_recipe.batch_size))
    assert timed == ["mlp", "cnn"]


def steps(plan: ApolloPlan, recipe: str) -> int:
    """Return the batches of an epoch."""
    return -(-plan.split.train_size // getattr(plan, recipe).batch_size)


@pytest.mark.long
def test_a_sweep_is_priced_around_its_own_plan_unless_another_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cost", "--sweep", "apollo-toy2d", *ONE_IN_WORDS]
    assert main([*words, "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    plan = load_plan("apollo-toy2d", ONE)
    assert cost["stages"][0]["needed"] == len(jobs_of(plan, "train"))
    assert cost["settings"] == len(plans_of("apollo-toy2d", plan))
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "this sweep" in shown and f"settings: {cost['settings']};" in shown


def test_an_unknown_sweep_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--sweep", "apollo-ablatoin"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "apollo-ablatoin" in line and "did you mean" in line and "apollo-ablation" in line


def test_a_choice_costs_the_rehearsal_of_all_settings_and_the_audit_of_two(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metric = "gradient_ascent.apollo.auc"
    vary = ["--vary", "audit.search.steps=1,2,5", "--metric", metric, *ONE_IN_WORDS]
    plan = load_plan("apollo-smoke", ONE)
    plans = [plan.changed({"audit.search.steps": steps}) for steps in (1, 2, 5)]
    own = next(each for each in plans if each == plan)
    assert own is not plans[-1], "the dearest is another one"
    assert APOLLO.selection is not None
    keys: dict[str, set[str]] = {}
    rehearsed = [job for each in plans for job in APOLLO.selection.jobs(open_design(each), metric)]
    for job in (*rehearsed, *jobs_of(own), *jobs_of(plans[-1])):
        keys.setdefault(job.stage, set()).add(job.key)
    assert main(["cost", "apollo-smoke", "--tune", *vary, "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert {stage["stage"]: stage["needed"] for stage in cost["stages"]} == {
        name: len(each) for name, each in keys.items()
    }
    assert (cost["settings"], cost["audited"]) == (3, [f"steps={plan.audit.search.steps}", "steps=5"])
    asked = {entry["attack"]: entry["total"] for entry in cost["queries"]}
    candidates = plan.split.candidates.forget + plan.split.candidates.unseen
    models = plan.split.targets * len(plan.unlearning)
    assert asked["apollo"] == models * candidates * sum(4 * steps + 1 for steps in (plan.audit.search.steps, 5))
    assert main(["cost", "apollo-smoke", "--tune", *vary]) == 0
    shown = capsys.readouterr().out
    assert "this choice" in shown and "settings: 3 are rehearsed" in " ".join(shown.split())


def test_a_choice_is_priced_before_the_points_are_ranked() -> None:
    plan = load_plan("apollo-smoke", ["split.ranking_models=4", "split.points=memorised", *ONE])
    sweep = Sweep("some", "", "apollo-smoke", fixed({"a": {"audit.search.steps": 1}}), "", "")
    choice = choice_of(APOLLO, sweep, plan, "gradient_ascent.apollo.auc", "max")
    counted = needed(estimate(APOLLO, plan, sweep, rehearsal=choice.rehearsal(APOLLO)))
    random = plan.changed({"split.points": "random"})
    sets = {job.shadow_set for job in jobs_of(random, "score")}
    assert counted["rank"] == 1 and counted["appraise"] == 2 * len(sets)
    assert counted == {
        **needed(estimate(APOLLO, random, sweep, rehearsal=choice.rehearsal(APOLLO))),
        "rank": 1,
        "train": counted["train"],
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tune"], "no sweep is named"),
        (["--tune", "--sweep", "apollo-ablation"], "no --metric is given"),
        (["--tune", "--vary", "recipe.epochs=1,2", "--metric", "gradient_ascent.apollo.auc"], "no attack may choose"),
    ],
)
def test_what_cannot_be_tuned_has_no_price(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "apollo-smoke", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("which", "models"),
    [
        pytest.param("none", 0, marks=pytest.mark.long),
        pytest.param("first", 3, marks=pytest.mark.long),
        ("targets", 2 * 3),
    ],
)
def test_models_that_are_logged_are_counted(which: str, models: int, capsys: pytest.CaptureFixture[str]) -> None:
    two = ["--set", "split.targets=2", "--set", "audit.fpr=[0.5]"]
    words = ["cost", "apollo-smoke", *two, "--log-models", which, "--store", "store"]
    assert main([*words, "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert (alone["logged_models"], alone["logged_bytes"] > 0) == (models, models > 0)
    assert main(words) == 0
    assert (f"MLflow: {models} models, " in capsys.readouterr().out) == (models > 0)
    assert main([*words, "--json", "--vary", "audit.search.steps=1,2"]) == 0
    swept = json.loads(capsys.readouterr().out)
    assert swept["logged_models"] == models, "settings of the attack share their targets"


def test_models_of_points_that_are_not_yet_ranked_are_counted_too(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--set", "split.points=exposed", "--log-models", "first", "--store", "store"]
    words = ["cost", "apollo-smoke", *ONE_IN_WORDS, *more]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["logged_models"] == 3

"""A plan: its defaults, what it refuses, what overrides do, and that it survives a round trip."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.errors import BadInput
from orchestrator.plan import Plan, load_plan, plan_from
from orchestrator.plan_checks import check_against_data
from orchestrator.plan_errors import PlanProblems
from orchestrator.plan_files import parse_yaml, shipped_plans


def refusal(*overrides: str, plan: str = "apollo-fashion14") -> str:
    with pytest.raises(BadInput) as caught:
        load_plan(plan, overrides)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_code_defaults_are_the_embedded_default_plan() -> None:
    assert plan_from({}) == load_plan() == load_plan("apollo-fashion14")


@pytest.mark.parametrize("name", sorted(shipped_plans()))
def test_every_shipped_plan_is_valid_without_notes_or_warnings(name: str) -> None:
    plan = load_plan(name)
    assert plan.notes == ()
    assert plan.warnings == ()
    check_against_data(plan)


@pytest.mark.parametrize("name", sorted(shipped_plans()))
def test_resolved_plan_loads_to_an_equal_plan(name: str) -> None:
    plan = load_plan(name)
    again = plan_from(parse_yaml(plan.to_yaml(), "resolved"))
    assert again == plan
    assert again.plan_hash == plan.plan_hash
    assert plan_from(plan.resolved()).to_yaml() == plan.to_yaml()


@given(
    shadows=st.integers(1, 20).map(lambda pairs: 4 * pairs),
    beta=st.floats(0, 1e6, allow_nan=False),
    rate=st.floats(1e-12, 1e3),
    seed=st.integers(0, 2**80),
)
def test_numbers_survive_the_round_trip_exactly(shadows: int, beta: float, rate: float, seed: int) -> None:
    values = {"split.shadows": shadows, "audit.search.beta": beta, "recipe.learning_rate": rate, "seed": seed}
    plan = load_plan(None, values=values)
    again = plan_from(parse_yaml(plan.to_yaml(), "resolved"))
    assert (again.split.shadows, again.audit.search.beta) == (shadows, beta)
    assert (again.recipe.learning_rate, again.seed) == (rate, seed)


def test_settings_are_completed_with_the_components_defaults() -> None:
    plan = load_plan(None, ["unlearning=[{method: scrub, epochs: 3}]", "model={name: cnn}"])
    scrub = next(entry for entry in plan.unlearning if entry.method == "scrub")
    assert scrub.settings["epochs"] == 3
    assert scrub.settings["temperature"] == 4.0
    assert plan.model.settings["channels"] == [16, 32]
    assert plan.model.architecture().name == "cnn"
    assert scrub.unlearner().name == "scrub"


def test_missing_controls_are_added_and_noted() -> None:
    plan = load_plan(None, ["unlearning=[{method: finetune}]"])
    assert [entry.label for entry in plan.unlearning] == ["identity", "finetune", "retrain"]
    assert len(plan.notes) == 2
    assert plan.changed({"seed": 1}).notes == plan.notes


def test_two_settings_of_a_method_need_names_of_their_own() -> None:
    twice = "unlearning=[{method: finetune}, {method: finetune, learning_rate: 0.1}]"
    assert "'finetune' stands there 2 times" in refusal(twice)
    plan = load_plan(None, ["unlearning=[{method: finetune}, {method: finetune, as: hot, learning_rate: 0.1}]"])
    assert [entry.label for entry in plan.unlearning] == ["identity", "finetune", "hot", "retrain"]
    assert plan_from(plan.resolved()).resolved() == plan.resolved()


def test_hash_ignores_where_a_plan_runs_but_not_what_it_computes() -> None:
    plan = load_plan()
    same = {"compute.workers": 7, "compute.store": "/elsewhere", "tracking.experiment": "x", "data.root": "/data"}
    assert plan.changed(same).plan_hash == plan.plan_hash
    others = [plan.changed(change).plan_hash for change in ({"seed": 1}, {"compute.chunk": 64}, {"recipe.epochs": 61})]
    assert len({plan.plan_hash, *others}) == 4


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("audit.search.beta=2", ("audit", "search", "beta"), 2.0),
        ("recipe.learning_rate=2e-4", ("recipe", "learning_rate"), 2e-4),
        ("unlearning.1.epochs=3", ("unlearning", 1, "epochs"), 3),
        ("unlearning.scrub.epochs=3", ("unlearning", 3, "epochs"), 3),
        ("audit.fpr=[0.05, 0.1]", ("audit", "fpr"), [0.05, 0.1]),
        ("compute.workers=0", ("compute", "workers"), 0),
        ("split.candidates.unseen=40", ("split", "candidates", "unseen"), 40),
        ("model.settings.hidden=[16]", ("model", "settings", "hidden"), [16]),
    ],
)
def test_set_changes_one_value(override: str, path: tuple[str | int, ...], value: Any) -> None:
    found: Any = load_plan(None, [override]).resolved()
    for part in path:
        found = found[part]
    assert found == value
    assert load_plan(None, [override]) != load_plan()


def test_another_model_drops_the_settings_of_the_former() -> None:
    assert load_plan(None, ["model.name=cnn"]).model.settings == load_plan(None, ["model={name: cnn}"]).model.settings
    changed = load_plan(None, ["unlearning.1.method=scrub", "unlearning.3.as=second", "unlearning.1.epochs=2"])
    assert changed.unlearning[1].settings["epochs"] == 2


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("split.shadow=8", ("split.shadow", "did you mean 'shadows'?")),
        ("split.shadows=ten", ("split.shadows", '"ten"', "a whole number")),
        ("split.shadows=15", ("split.shadows is 15", "multiple of 4", "16")),
        ("split.shadows=18", ("split.shadows is 18", "multiple of 4", "20")),
        ("split.offline_shadows=3", ("split.offline_shadows is 3", "even")),
        ("split.forget=0", ("split.forget is 0", "above 0")),
        ("split.forget=1.0", ("split.forget is 1.0", "below 1")),
        ("split.forget=0.0001", ("split.forget", "none")),
        ("split.candidates.forget=51", ("split.candidates.forget is 51", "only 50")),
        ("split.targets_per_shadow_set=2", ("split.candidates", "200 candidates", "100 candidates per set")),
        ("split.candidates.unseen=0", ("split.candidates.unseen is 0", "1 or more")),
        ("split.test_pool=400", ("split.test_pool holds 400", "more than 400")),
        ("split.train_size=4001", ("split.train_size is 4001", "split.target_pool")),
        ("split.shadow_pool=900", ("half of split.shadow_pool holds 450", "2000")),
        ("audit.fpr=[0.001]", ("audit.fpr 0.001", "400", "10000")),
        ("audit.fpr=[1.5]", ("audit.fpr.0 is 1.5", "below 1")),
        ("audit.fpr=[0.05, 0.05]", ("audit.fpr", "2 times")),
        ("audit.attacks=[apolo]", ("audit.attacks.0", "did you mean 'apollo'?")),
        ("audit.search.shadows=32", ("audit.search.shadows is 32", "split.shadows (16)")),
        ("audit.search.shadows=6", ("audit.search.shadows is 6", "multiple of 4")),
        ("audit.search.epsilon=0", ("audit.search.epsilon is 0", "above 0")),
        ("audit.search.steps=0", ("audit.search.steps is 0", "1 or more")),
        ("compute.workers=many", ("compute.workers", '"many"', '"auto"')),
        ("compute.workers=-1", ("compute.workers is -1",)),
        ("compute.device=tpu", ("compute.device", "cuda:N")),
        ("compute.gpus_per_worker=1.5", ("compute.gpus_per_worker is 1.5", "whole number")),
        ("recipe.optimizer=adamm", ("recipe.optimizer", "'adamw'")),
        ("recipe.epochs=-1", ("recipe.epochs is -1",)),
        ("recipe.epochz=1", ("recipe.epochz", "did you mean 'epochs'?")),
        ("model.name=resnet", ("model.name", "did you mean 'resnet18'?")),
        ("model.settings.hiden=[1]", ("model.settings.hiden", "did you mean 'hidden'?")),
        ("model.settings.hidden=[a]", ("model.settings.hidden.0", "a whole number")),
        ("unlearning.1.method=gradient", ("unlearning.1.method", "did you mean")),
        ("unlearning.1.epoch=1", ("unlearning.1.epoch", "did you mean 'epochs'?")),
        ("unlearning.1.learning_rate=-1", ("unlearning.1.learning_rate is -1", "above 0")),
        ("unlearning.scrubb.epochs=1", ("unlearning.scrubb", "did you mean 'scrub'?")),
        ("unlearning.9.epochs=1", ("unlearning.9", "0 to 4")),
        ("unlearning=[]", ("unlearning is []", "at least 1")),
        ("seed.x=1", ("seed.x", "not a section")),
        ("seed=1.5", ("seed is 1.5", "a whole number")),
        ("split", ("path=value",)),
        ("audit.level=true", ("audit.level is true", "a number")),
        ("audit.search.beta=.inf", ("audit.search.beta", "finite")),
        ("tracking.experiment=2024-01-01", ("tracking.experiment", "quotes")),
    ],
)
def test_broken_values_are_refused_with_path_value_and_remedy(override: str, parts: tuple[str, ...]) -> None:
    text = refusal(override)
    for part in parts:
        assert part in text


def test_several_problems_are_counted_and_all_kept() -> None:
    with pytest.raises(PlanProblems) as caught:
        load_plan(None, ["split.shadows=15", "split.candidates.forget=99", "audit.fpr=[0.001]"])
    assert str(caught.value).endswith(f"(+{len(caught.value.problems) - 1} more)")
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("split:\n\ttargets: 8\n", "tab"),
        ("seed: 1\nseed: 2\n", "'seed' is given twice"),
        ("audit: [1,\n", "line"),
        ("- a\n- b\n", "a mapping of sections"),
        ("", "empty plan"),
        ("seed: !!python/object:os.system {}\n", "not valid YAML"),
        ("a: &a [*a]\n", "nested too deeply"),
        ("a: 1\n---\nb: 2\n", "line"),
        ("1: 2\n", "not text"),
    ],
)
def test_garbled_files_are_refused_on_one_line(tmp_path: Any, text: str, part: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_plan(str(path))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_exponents_are_numbers_as_in_yaml_1_2() -> None:
    assert parse_yaml("[2e-3, 1E5, 1.5e-2, -3e+1]", "x") == [2e-3, 1e5, 1.5e-2, -30.0]
    assert parse_yaml("[e3, 1e, 0x1e3, abc1e5]", "x") == ["e3", "1e", 0x1E3, "abc1e5"]


def test_overlapping_halves_and_a_single_target_are_warned_of() -> None:
    plan = load_plan(None, ["split.shadow_pool=1600", "split.targets=1", "audit.fpr=[0.2]"])
    assert any("will not hold" in line for line in plan.warnings)
    assert any("split.targets is 1" in line for line in plan.warnings)


def test_pools_larger_than_the_data_set_are_refused() -> None:
    with pytest.raises(BadInput, match=r"need 2[0-9]{4} points, but digits has 1797"):
        check_against_data(load_plan(None, ["data.name=digits"]))


def test_plans_do_not_change_after_loading() -> None:
    plan = load_plan()
    with pytest.raises(ValueError, match="frozen"):
        plan.seed = 1
    assert isinstance(plan, Plan)

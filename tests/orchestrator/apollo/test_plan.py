"""A plan: its defaults, what overrides do, what its hash counts, and that it survives a round trip."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.data.catalogue import describe
from audits.errors import BadInput
from orchestrator.apollo.checks import check_fit
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.files import parse_yaml, shipped_plan, shipped_plans
from orchestrator.engine.plan.sections import Data
from orchestrator.kinds import OF_TARGETS, check_against_data, load_plan, plan_from
from orchestrator.tmia.plan import TmiaPlan
from tests.orchestrator.apollo.plan_cases import refusal

TOO_SMALL = {"gnq-faces": "split.pools is 1", "mia-smoke": "split.shadows is 4"}
"""Plan → the warning that it comes with: four hundred faces make one pool, and a plan of seconds has few shadows."""


def data_of_settings(plan: BasePlan) -> list[Data]:
    """Return all data that a plan and its variants read."""
    each = [plan.changed(changes) if changes else plan for changes in plan.settings().values()]
    return [
        data for one in each for data in (one.data, one.transfer.data if isinstance(one, TmiaPlan) else None) if data
    ]


def of_known_size(data: Data) -> bool:
    """Return whether all that a plan must know of ``data`` is known without them."""
    facts = describe(data.name, data.root)
    return bool(facts.points and facts.shape and facts.classes)


def test_code_defaults_are_the_embedded_default_plan() -> None:
    assert plan_from({}) == load_plan() == load_plan("apollo-fashion14")


@pytest.mark.parametrize("name", sorted(shipped_plans()))
def test_every_shipped_plan_is_valid_without_warnings_or_notes_but_of_presets(name: str) -> None:
    plan = load_plan(name)
    assert all("takes the preset" in note for note in plan.notes)
    assert [line for line in plan.warnings if TOO_SMALL.get(name, "none") not in line] == []
    facts = describe(plan.data.name, plan.data.root)
    if name in OF_TARGETS.values():
        with pytest.raises(BadInput, match=r"members\.txt cannot be read"):  # files of the reader's own
            check_against_data(plan)
        return
    if isinstance(plan, ApolloPlan):
        check_fit(plan, facts)
    if all(of_known_size(data) for data in data_of_settings(plan)):
        check_against_data(plan, absent=True)
    if not facts.present:
        with pytest.raises(BadInput, match="not found in"):
            check_against_data(plan)


@pytest.mark.parametrize("name", sorted(shipped_plans()))
def test_resolved_plan_loads_to_an_equal_plan(name: str) -> None:
    plan = load_plan(name)
    again = plan_from(parse_yaml(plan.to_yaml(), "resolved"))
    assert again == plan
    assert again.plan_hash == plan.plan_hash
    assert plan_from(plan.resolved()).to_yaml() == plan.to_yaml()


@settings(max_examples=8)
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


def test_a_shipped_plan_that_is_changed_is_read_again_as_it_was() -> None:
    shipped_plan("apollo-smoke")["split"]["targets"] = 99
    assert shipped_plan("apollo-smoke")["split"]["targets"] == 3


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
    assert sum("was added" in line for line in plan.notes) == 2
    assert plan.changed({"seed": 1}).notes == plan.notes


def test_two_settings_of_a_method_need_names_of_their_own() -> None:
    twice = "unlearning=[{method: finetune}, {method: finetune, learning_rate: 0.1}]"
    assert "'finetune' is listed 2 times" in refusal(twice)
    plan = load_plan(None, ["unlearning=[{method: finetune}, {method: finetune, as: hot, learning_rate: 0.1}]"])
    assert [entry.label for entry in plan.unlearning] == ["identity", "finetune", "hot", "retrain"]
    assert plan_from(plan.resolved()).resolved() == plan.resolved()


def test_hash_ignores_where_a_plan_runs_but_not_what_it_computes() -> None:
    plan = load_plan()
    same = {"compute.workers": 7, "compute.store": "/elsewhere", "tracking.experiment": "x", "data.root": "/data"}
    assert plan.changed(same).plan_hash == plan.plan_hash
    others = [plan.changed(change).plan_hash for change in ({"seed": 1}, {"compute.chunk": 64}, {"recipe.epochs": 61})]
    assert len({plan.plan_hash, *others}) == 4


def test_new_fields_leave_plans_of_earlier_versions_the_same_design() -> None:
    old = shipped_plan("apollo-fashion14")
    assert not {"points", "ranking_models"} & set(old["split"])
    plan = plan_from(old)
    assert (plan.shadow_model, plan.shadow_recipe) == (None, None)
    assert (plan.audit.population, plan.audit.queries, plan.audit.fdr) == (200, None, 0.1)
    assert (plan.audit.search.norm, plan.split.points, plan.split.ranking_models) == ("l2", "random", 32)
    assert (plan.split.candidates.retained, plan.split.forget) == (0, 0.1)


@pytest.mark.parametrize(
    "change",
    [
        {"shadow_model": {"name": "cnn"}},
        {"shadow_recipe": {"epochs": 30}},
        {"audit.population": 100},
        {"audit.queries": 3},
        {"audit.fdr": 0.2},
        {"audit.search.norm": "linf"},
        {"split.candidates.retained": 10},
        {"split.points": "memorised"},
        {"split.ranking_models": 16},
        {"split.forget": {"classes": [1, 2, 3]}},
        {"split.forget": {"ids": list(range(50))}},
    ],
    ids=str,
)
def test_every_new_field_counts_in_the_hash_and_survives_the_round_trip(change: dict[str, Any]) -> None:
    plan = load_plan(None, values=change)
    assert plan.plan_hash != load_plan().plan_hash
    assert plan_from(parse_yaml(plan.to_yaml(), "resolved")) == plan
    (path,) = change
    assert path.split(".")[0] in plan.deciding()


def test_a_label_budget_is_by_default_that_of_apollo() -> None:
    assert load_plan().audit.query_budget == 1 + 4 * 5
    assert load_plan(None, ["audit.search.steps=2"]).audit.query_budget == 9
    assert load_plan(None, ["audit.queries=3"]).audit.query_budget == 3


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
        ("shadow_model.name=cnn", ("shadow_model", "name"), "cnn"),
        ("shadow_recipe.epochs=30", ("shadow_recipe", "epochs"), 30),
        ("split.forget={classes: [Trouser]}", ("split", "forget"), {"classes": ["Trouser"], "fraction": 1.0}),
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


def test_exponents_are_numbers_as_in_yaml_1_2() -> None:
    assert parse_yaml("[2e-3, 1E5, 1.5e-2, -3e+1]", "x") == [2e-3, 1e5, 1.5e-2, -30.0]
    assert parse_yaml("[e3, 1e, 0x1e3, abc1e5]", "x") == ["e3", "1e", 0x1E3, "abc1e5"]


def test_plans_do_not_change_after_loading() -> None:
    plan = load_plan()
    with pytest.raises(ValueError, match="frozen"):
        plan.seed = 1
    assert isinstance(plan, ApolloPlan)

"""A plan: its defaults, what it refuses, what overrides do, and that it survives a round trip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.data.catalogue import describe
from audits.data.split import ForgetClasses, ForgetIds
from audits.errors import BadInput
from orchestrator.plan import Plan, load_plan, plan_from
from orchestrator.plan_checks import check_against_data, check_fit
from orchestrator.plan_errors import PlanProblems
from orchestrator.plan_files import parse_yaml, shipped_plan, shipped_plans

TINY = (
    "split={targets: 2, train_size: 30, target_pool: 60, shadow_pool: 120, test_pool: 100, forget: 0.5, "
    "candidates: {forget: 15, unseen: 15}, shadows: 4, offline_shadows: 2}",
    "audit.fpr=[0.4]",
)


def refusal(*overrides: str, plan: str = "apollo-fashion14") -> str:
    with pytest.raises(BadInput) as caught:
        load_plan(plan, overrides)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_code_defaults_are_the_embedded_default_plan() -> None:
    assert plan_from({}) == load_plan() == load_plan("apollo-fashion14")


@pytest.mark.parametrize("name", sorted(shipped_plans()))
def test_every_shipped_plan_is_valid_without_warnings_or_notes_but_of_presets(name: str) -> None:
    plan = load_plan(name)
    assert all("takes the preset" in note for note in plan.notes)
    assert plan.warnings == ()
    facts = describe(plan.data.name, plan.data.root)
    check_fit(plan, facts)
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
    assert sum("was added" in line for line in plan.notes) == 2
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


def test_a_forget_set_is_a_fraction_classes_or_ids(tmp_path: Path) -> None:
    names = ("T-shirt/top", "Trouser", "Pullover")
    by_class = load_plan(None, ["split.forget={classes: [Trouser, 2], fraction: 0.5}"]).split
    assert by_class.design(names).forget == ForgetClasses((1, 2), 0.5)
    assert by_class.forget_share is None
    assert by_class.forget_words() == "50 % of the training points of class Trouser, 2"
    by_id = load_plan(None, [f"split.forget={{ids: {list(range(60))}}}"]).split
    assert by_id.design().forget == ForgetIds(tuple(range(60)))
    assert by_id.forget_words() == "60 named points"
    fraction = load_plan().split
    assert (fraction.design().forget, fraction.forget_share) == (0.1, 0.1)
    assert fraction.forget_words() == "10 % of 500 training points"
    assert load_plan(None, ["split.forget={classes: [4]}"]).split.forget_words() == "all training points of class 4"


def test_a_file_of_ids_is_read_at_load_and_the_plan_no_longer_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("# points of a customer\n0, 1,2\n" + "\n".join(str(row) for row in range(3, 60)) + "  # the rest\n")
    plan = load_plan(None, [f"split.forget={{ids_file: {path}}}"])
    path.unlink()
    assert plan_from(plan.resolved()) == plan == load_plan(None, [f"split.forget={{ids: {list(range(60))}}}"])


@pytest.mark.parametrize(
    ("text", "part"), [("1\ntwo\n", "'two'"), ("-1", "'-1'"), ("", "at least 1"), ("1.5", "'1.5'")]
)
def test_files_that_hold_no_ids_are_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "ids.txt"
    path.write_text(text)
    assert part in refusal(f"split.forget={{ids_file: {path}}}")


@pytest.mark.parametrize(
    ("overrides", "forgotten"),
    [
        (["split.forget=0.01", "split.candidates={forget: 5, unseen: 5}", "audit.fpr=[0.25]"], 5),
        (["split.forget=0.5"], 250),
        (["split.shadows=4"], 50),
        (["split.shadows=64"], 50),
    ],
    ids=["1 %", "50 %", "m = 4", "m = 64"],
)
def test_small_and_large_forget_sets_and_shadow_sets_are_plans(overrides: list[str], forgotten: int) -> None:
    assert load_plan(None, overrides).split.design().forget_count == forgotten


def test_a_rate_that_named_points_or_classes_cannot_resolve_is_refused_with_the_needed_number() -> None:
    for forget in ("{classes: [1, 2, 3]}", f"{{ids: {list(range(60))}}}"):
        text = refusal(f"split.forget={forget}", "audit.fpr=[0.01]")
        assert "400 unseen candidates (8 targets × 50): it needs 1000" in text


def test_named_points_are_warned_of() -> None:
    plan = load_plan(None, [f"split.forget={{ids: {list(range(60))}}}"])
    assert any("not independent over points" in line for line in plan.warnings)


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
        ("split.forget=true", ("split.forget is true", "a fraction")),
        ("split.forget=[3]", ("split.forget is [3]", "{classes: [..], fraction: 1.0}")),
        ("split.forget={class: 3}", ("split.forget", "{ids: [..]}")),
        ("split.forget={classes: [3], ids: [3]}", ("split.forget", "allowed")),
        ("split.forget={classes: []}", ("split.forget.classes is []", "at least 1")),
        ("split.forget={classes: [1.5]}", ("split.forget.classes has 1.5", "names of classes")),
        ("split.forget={classes: [3, 3]}", ("split.forget.classes: 3", "2 times")),
        ("split.forget={classes: [3], fraction: 0}", ("split.forget.fraction is 0", "above 0")),
        ("split.forget={classes: [3], fractoin: 1}", ("split.forget.fractoin", "did you mean 'fraction'?")),
        ("split.forget={ids: [1, 2]}", ("only 2 points (2 ids)", "name more ids")),
        ("split.forget={ids: [5, 5]}", ("split.forget.ids", "twice")),
        ("split.forget={ids: [-5]}", ("split.forget.ids.0 is -5", "0 or more")),
        ("split.forget={ids_file: nowhere.txt}", ("split.forget.ids_file 'nowhere.txt'", "No such file")),
        ("split.forget={ids_file: 3}", ("split.forget.ids_file is 3", "the path of a file")),
        ("split.forget=0.01", ("only 5 points (0.01 of 500)", "more targets", "raise split.forget")),
        ("split.candidates.retained=-1", ("split.candidates.retained is -1", "0 or more")),
        ("split.candidates.retained=150", ("a quarter of the 250 candidates", "199 candidates per set")),
        ("split.points=top", ("split.points", "'memorised'")),
        ("split.ranking_models=2", ("split.ranking_models is 2", "4 or more")),
        ("shadow_model.name=cn", ("shadow_model.name", "did you mean 'cnn'?")),
        ("shadow_model={name: cnn, settings: {hiden: 1}}", ("shadow_model.settings.hiden", "'hidden'?")),
        ("shadow_model={name: cnn, settings: {hidden: 0}}", ("shadow_model.settings.hidden is 0",)),
        ("shadow_recipe.epochz=1", ("shadow_recipe.epochz", "did you mean 'epochs'?")),
        ("shadow_recipe.epochs=-1", ("shadow_recipe.epochs is -1",)),
        ("audit.population=0", ("audit.population is 0", "1 or more")),
        ("audit.queries=0", ("audit.queries is 0", "1 or more")),
        ("audit.fdr=1", ("audit.fdr is 1", "below 1")),
        ("audit.search.norm=l1", ("audit.search.norm", "'linf'")),
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


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["split.shadows=12", "split.candidates.retained=10"], ("split.shadows is 12", "multiple of 8, e.g. 16")),
        (["audit.search.shadows=4", "split.candidates.retained=10"], ("audit.search.shadows is 4", "multiple of 8")),
        (["split.forget={classes: [1]}", "split.candidates.retained=10"], ("fraction below 1",)),
        (["split.forget={classes: [1]}", "split.points=memorised"], ("give a fraction to forget",)),
        (
            ["split.points=memorised", "split.ranking_models=4", "split.candidates.retained=50", "split.targets=8"],
            ("1200 candidates", "the 1000 points that are ranked", "raise split.ranking_models"),
        ),
        (["audit.search.alpha=0", "audit.search.beta=0"], ("both 0",)),
    ],
)
def test_combinations_that_cannot_work_are_refused(overrides: list[str], parts: tuple[str, ...]) -> None:
    text = refusal(*overrides)
    for part in parts:
        assert part in text


def test_a_choice_from_few_ranked_points_is_warned_of() -> None:
    few, many = (load_plan(None, ["split.points=memorised", f"split.ranking_models={count}"]) for count in (4, 32))
    assert any("80% of the 1000 ranked points" in line for line in few.warnings)
    assert many.warnings == ()


def test_another_shadow_architecture_is_checked_against_the_data() -> None:
    check_against_data(load_plan(None, ["shadow_model.name=cnn"]))
    with pytest.raises(BadInput, match=r"^shadow_model\.name: cnn"):
        check_against_data(load_plan("apollo-smoke", ["data.name=toy2d", "shadow_model.name=cnn", *TINY]))


@pytest.mark.parametrize(
    ("forget", "says"),
    [
        ("{classes: [Sandals]}", "did you mean 'Sandal'?"),
        ("{classes: [10]}", "0 to 9"),
        (f"{{ids: [{', '.join(str(70000 - row) for row in range(60))}]}}", "has 70000; fashion14 has the points 0 to"),
    ],
)
def test_classes_and_ids_that_the_data_do_not_have_are_refused(forget: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_against_data(load_plan(None, [f"split.forget={forget}"]))
    assert says in str(caught.value)


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

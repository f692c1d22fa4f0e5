"""Plans that are refused or warned of: broken values, combinations that cannot work, garbled files."""

from __future__ import annotations

from typing import Any

import pytest

from audits.errors import BadInput
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.kinds import check_against_data, load_plan
from tests.orchestrator.apollo.plan_cases import TINY, refusal


def test_the_former_name_of_an_attack_is_refused_with_the_new_ones() -> None:
    line = 'audit.attacks.1 is "apollo_paper", which is now "apollo_under" and "apollo_over"; change the plan'
    assert refusal("audit.attacks=[apollo, apollo_paper]") == line


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
        ("split.forget=0.0001", ("split.forget", "less than one of 500 points")),
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
        ("split.forget={ids: [-5]}", ("split.forget.ids.0: -5", "from 0 on")),
        ("split.forget={ids_file: nowhere.txt}", ("split.forget.ids_file 'nowhere.txt'", "No such file")),
        ("split.forget={ids_file: 3}", ("split.forget.ids_file is 3", "the path of a file")),
        ("split.forget=0.01", ("only 5 points (0.01 of 500)", "more targets", "raise split.forget")),
        ("split.candidates.retained=-1", ("split.candidates.retained is -1", "0 or more")),
        ("split.candidates.retained=150", ("a quarter of the 250 candidates", "199 candidates per set")),
        ("split.points=top", ("split.points", "'memorised'")),
        ("split.ranking_models=0", ("split.ranking_models is 0", "1 or more")),
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
        ("model.name=resnet1", ("model.name", "did you mean 'resnet18'?")),
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
        (["split.points=memorised", "split.ranking_models=2"], ("split.ranking_models is 2", "4 or more")),
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


def test_overlapping_halves_and_a_single_target_are_warned_of() -> None:
    plan = load_plan(None, ["split.shadow_pool=1600", "split.targets=1", "audit.fpr=[0.2]"])
    assert any("will not hold" in line for line in plan.warnings)
    assert any("split.targets is 1" in line for line in plan.warnings)


def test_pools_larger_than_the_data_set_are_refused() -> None:
    with pytest.raises(BadInput, match=r"need 2[0-9]{4} points, but digits has 1797"):
        check_against_data(load_plan(None, ["data.name=digits"]))

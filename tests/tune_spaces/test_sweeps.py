"""Every shipped sweep: its plans are valid, what it shares is shared, its space is Ray Tune's."""

from __future__ import annotations

import pytest

from audits.apollo.attacks import ATTACKS
from audits.unlearning import UNLEARNERS
from orchestrator.apollo.kind import KIND
from orchestrator.apollo.result.front import parts_of
from orchestrator.apollo.tuning import of_targets
from orchestrator.engine.jobs.job import of_stage
from orchestrator.kinds import load_plan, open_design
from tune_spaces import SWEEPS

FEW = ("split.targets=1", "split.shadows=4", "split.offline_shadows=2", "audit.fpr=[0.5]")


def settings_of(name, *overrides):
    sweep = SWEEPS[name]
    plan = load_plan(sweep.base, overrides)
    return plan, sweep.settings(plan.resolved())


@pytest.mark.parametrize("name", list(SWEEPS))
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_setting_of_a_shipped_sweep_is_a_valid_plan(name, every):
    """By default the first and the last setting that change the same fields."""
    plan, settings = settings_of(name)
    assert len({repr(sorted(changes.items())) for changes in settings.values()}) == len(settings)
    if not every:
        alike = {}
        for setting, changes in settings.items():
            alike.setdefault(frozenset(changes), []).append(setting)
        settings = {setting: settings[setting] for found in alike.values() for setting in {found[0], found[-1]}}
    hashes = {setting: plan.changed(changes).plan_hash for setting, changes in settings.items()}
    assert len(set(hashes.values())) == len(hashes), "two settings are the same plan"


def test_the_space_is_a_grid_over_the_settings():
    for name in SWEEPS:
        assert SWEEPS[name].space(["x", "y"]) == {"setting": {"grid_search": ["x", "y"]}}, name


def test_a_shipped_trade_names_a_method_and_an_attack_of_its_plan():
    for sweep in (SWEEPS[name] for name in SWEEPS if SWEEPS[name].trade):
        unlearner, attack = parts_of(sweep.trade)
        plan = load_plan(sweep.base)
        assert unlearner in [entry.label for entry in plan.unlearning] and attack in plan.audit.attacks


def test_the_defences_hold_the_plan_itself_and_go_into_shadows_and_targets_alike():
    plan, settings = settings_of("apollo-defences")
    assert len(settings) == 18
    assert plan.changed(settings["dropout=0, smoothing=0, epochs=60"]).plan_hash == plan.plan_hash
    for changes in settings.values():
        assert changes.keys() <= {"recipe.epochs", "recipe.label_smoothing", "model.settings.dropout"}
        assert plan.changed(changes).shadow_model is None and plan.changed(changes).shadow_recipe is None


@pytest.mark.long
def test_the_ablation_shares_one_population_and_varies_what_the_paper_varies():
    plan, settings = settings_of("apollo-ablation", "split.targets=1", "audit.fpr=[0.5]")
    population = [job.key for job in KIND.making_models(open_design(plan).jobs())]
    fields = set()
    one_of_each = {frozenset(changes): changes for changes in settings.values()}
    for changes in one_of_each.values():
        assert [job.key for job in KIND.making_models(open_design(plan.changed(changes)).jobs())] == population
        fields |= set(changes)
    assert fields == {f"audit.search.{name}" for name in ("beta", "shadows", "epsilon", "steps")}


def test_the_ablation_follows_the_plan_in_hand():
    plan, settings = settings_of("apollo-ablation", "audit.search={alpha: 2.0, beta: 2.0, epsilon: 0.2, steps: 4}")
    assert settings["beta/alpha=16"] == {"audit.search.beta": 32.0}
    base = plan.audit.search
    for name, changes in settings.items():
        if name.startswith("T="):
            width, steps = changes["audit.search.epsilon"], changes["audit.search.steps"]
            assert width * steps == pytest.approx(base.epsilon * base.steps)


def test_the_demo_is_the_plan_and_settings_of_the_ablation():
    _, settings = settings_of("apollo-demo")
    _, ablation = settings_of("apollo-ablation")
    assert list(settings) == ["base", "m=4", "epsilon=1", "T=1"]
    assert settings["base"] == {} and settings.items() <= ablation.items()
    assert "base" in SWEEPS["apollo-demo"].settings(load_plan("apollo-smoke").resolved())


def test_the_seeds_are_the_five_fixed_beforehand():
    _, settings = settings_of("apollo-seeds")
    assert [changes["seed"] for changes in settings.values()] == [0, 1, 2, 3, 4]


def test_the_unlearners_are_all_there_are_and_those_of_the_plan_keep_their_settings():
    plan, settings = settings_of("apollo-unlearners")
    (changes,) = settings.values()
    whole = plan.changed(changes)
    methods = [entry.method for entry in whole.unlearning]
    assert sorted(methods) == sorted(UNLEARNERS)
    assert methods[0] == "identity" and methods[-1] == "retrain"
    assert list(whole.audit.attacks) == list(ATTACKS)
    given = {entry.method: entry.settings for entry in plan.unlearning}
    assert {entry.method: entry.settings for entry in whole.unlearning if entry.method in given} == given


def test_shadows_of_another_architecture_are_trained_as_such_and_targets_are_shared():
    plan, settings = settings_of("apollo-transfer", *FEW)
    settings = {setting: changes for setting, changes in settings.items() if "resnet18" not in setting}
    assert len(settings) == 4
    jobs = {name: of_stage(open_design(plan.changed(changes)).jobs(), "train") for name, changes in settings.items()}
    names = {setting: setting.split("<-") for setting in settings}
    for setting, (target, shadow) in names.items():
        used = {(job.member.startswith("target"), job.document["model"]["name"]) for job in jobs[setting]}
        assert used == {(True, target), (False, shadow)}
    for setting, (target, _) in names.items():
        targets = [job.key for job in jobs[setting] if job.member.startswith("target")]
        assert targets == [job.key for job in jobs[f"{target}<-{target}"] if job.member.startswith("target")]


def test_a_defence_defends_shadows_and_targets_alike():
    plan, settings = settings_of("apollo-dropout", *FEW)
    for job in of_stage(open_design(plan.changed(settings["dropout=0.5"])).jobs(), "train"):
        assert job.document["model"]["settings"]["dropout"] == 0.5
    for job in of_stage(open_design(plan.changed(settings["label_smoothing=0.3"])).jobs(), "train"):
        assert job.document["recipe"]["label_smoothing"] == 0.3


def test_where_few_points_are_forgotten_few_are_asked_about():
    plan, settings = settings_of("apollo-forget-ratio", "audit.fpr=[0.05]")
    asked = {name: plan.changed(changes).split for name, changes in settings.items()}
    assert {name: (split.forget, split.candidates.forget) for name, split in asked.items()} == {
        "forget=0.05": (0.05, 25),
        "forget=0.1": (0.1, 50),
        "forget=0.5": (0.5, 50),
    }


def test_a_ladder_of_presets_makes_targets_only():
    plan, settings = settings_of("unlearning-presets")
    jobs = of_targets(open_design(plan.changed(next(iter(settings.values())))).jobs())
    assert {job.member[:6] for job in jobs} == {"target"}
    assert {job.stage for job in jobs} == {"train", "unlearn", "utility"}

"""Plans and sweeps of TMIA: their sizes keep p-values valid, and every setting varies what its name says."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from audits.data import source
from audits.data.catalogue import describe, load
from audits.errors import BadInput
from audits.models import make_model
from audits.models.layers import layers_of
from audits.tmia.design import check_sizes, warnings_of
from orchestrator.kinds import check_against_data, load_plan, open_design
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.plan import TmiaPlan, sizes
from tests.cases.families import family
from tests.cases.small_data_sets import write_idx_set, write_sets_of_the_tmia_paper
from tune_spaces import SWEEPS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAPER = ("tmia-caltech101", "tmia-cifar100", "tmia-flowers102", "tmia-pubfig83")
FROZEN = ("tmia-frozen-cnn", "tmia-frozen-vgg")
PLANS = (
    *PAPER,
    "tmia-fashion14",
    "tmia-smoke",
    *(str(EXAMPLES / f"{name}.yaml") for name in (*FROZEN, "tmia-fashion-mnist", "tmia-fashion-to-digits")),
)
SWEPT = tuple(name for name in SWEEPS if name.startswith("tmia-"))
POINTS = {"folder:pubfig83?size=100": 8300}  # known of the paper, not of an absent folder


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let data sets be looked for in an empty folder only; return it."""
    monkeypatch.setattr(source, "SYSTEM_DATASETS", tmp_path)
    monkeypatch.delenv(source.ORCH_DATA, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@functools.cache
def plan_of(name: str, *overrides: str) -> TmiaPlan:
    plan = load_plan(name, overrides)
    assert isinstance(plan, TmiaPlan)
    return plan


def settings_of(sweep: str, plan: TmiaPlan) -> dict[str, TmiaPlan]:
    return {name: plan.changed(changes) for name, changes in SWEEPS[sweep].settings(plan.resolved()).items()}


def own_points(plan: TmiaPlan) -> int:
    """Return how many points the candidates' side has; classes of the known sets are of about equal size."""
    name = plan.data.name
    points = POINTS.get(name) or describe(name).points
    return points // 2 if plan.split.classes in ("even", "odd") else points


def changed_fields(changes: Mapping[str, Any]) -> set[str]:
    return set(changes) - {"variants"}


# Plans


@pytest.mark.parametrize("name", PLANS)
def test_every_setting_of_a_plan_fits_its_data_and_keeps_p_values_valid(name: str) -> None:
    plan = plan_of(name)
    assert plan.warnings == ()
    for changes in plan.settings().values():
        one = plan.changed(changes)
        split = sizes(one)
        assert split.attacker_points >= 10 * split.train_size
        assert warnings_of(split, check_sizes(own_points(one), split)) == ()
        other = (one.transfer.data or one.data).name
        assert one.transfer.train_size < describe(other).points or other in POINTS


@pytest.mark.parametrize("name", PAPER)
def test_the_settings_are_those_of_the_paper(name: str) -> None:
    plan = plan_of(name)
    assert (plan.audit.mode, plan.audit.beta, plan.model.name) == ("I", 0.05, "vgg16")
    assert (plan.split.targets, plan.split.reference_models) == (100, 100)
    recipe = plan.recipe
    assert (recipe.optimizer, recipe.batch_size, recipe.epochs) == ("adam", 64, 100)
    assert (recipe.weight_decay, recipe.schedule) == (0, "constant")


def test_the_default_runs_all_three_attacks_and_near_students() -> None:
    plan = plan_of("tmia-fashion14")
    found = {name: plan.changed(changes) for name, changes in plan.settings().items()}
    assert {name: one.audit.mode for name, one in found.items()} == {
        **{name: name for name in ("I", "II", "III")},
        "III-true": "III",
    }
    assert {name: one.audit.y_star for name, one in found.items()} == {
        **{"I": "true", "II": "own", "III": "own"},
        "III-true": "true",
    }
    assert {name: (one.split.classes, one.transfer.classes) for name, one in found.items()} == {
        "I": (None, None),
        "II": ("even", "odd"),
        "III": ("odd", "even"),
        "III-true": ("odd", "even"),
    }
    check_against_data(plan)


@family("name", ["tmia-flowers102", "tmia-cifar100"], default=(0,))
def test_plans_of_known_sizes_are_checked_without_their_data(name: str) -> None:
    plan = plan_of(name, "model.settings.width=2")
    check_against_data(plan, absent=True)
    with pytest.raises(BadInput, match="not found in"):
        check_against_data(plan)


@family("name", ["tmia-pubfig83", "tmia-caltech101"], default=(0,))
def test_plans_of_unknown_classes_say_where_the_data_were_looked_for(name: str) -> None:
    with pytest.raises(BadInput, match="not found in"):
        check_against_data(plan_of(name), absent=True)


# Sweeps


def test_the_sweeps_are_those_of_the_paper_and_controls() -> None:
    names = (
        "alpha",
        "attack-1",
        "attack-3",
        "beta",
        "dropout",
        "frozen-layers",
        "overfit",
        "pool",
        "seeds",
        "transfer-ladder",
    )
    assert sorted(SWEPT) == [f"tmia-{name}" for name in names]


@pytest.mark.parametrize("name", sorted(set(SWEPT) - {"tmia-pool"}))
def test_a_setting_is_one_plan_whose_p_values_hold(name: str) -> None:
    plan = plan_of(SWEEPS[name].base)
    for one in settings_of(name, plan).values():
        assert one.variants == {}
        assert warnings_of(sizes(one), check_sizes(own_points(one), sizes(one))) == ()


@pytest.mark.parametrize("name", ["tmia-frozen-layers", "tmia-attack-3"])
@pytest.mark.parametrize("base", ["tmia-fashion14", "tmia-cifar100"])
def test_halves_of_the_classes_leave_filler_for_seven_training_sets(name: str, base: str) -> None:
    for one in settings_of(name, plan_of(base)).values():
        assert one.split.classes in ("even", "odd")
        split = sizes(one)
        assert check_sizes(own_points(one), split) >= 7 * split.train_size
        assert split.train_size >= split.candidates


def test_halves_shrink_no_more_than_they_must() -> None:
    """35 000 points hold 17 · 2 000 and 1 000 candidates exactly; one point a training set more, and all shrink."""
    same, less = (
        settings_of("tmia-frozen-layers", plan_of("tmia-fashion14", f"split.train_size={size}"))["near/n_frozen=0"]
        for size in (2000, 2001)
    )
    assert (same.split.train_size, same.split.candidates, same.split.attacker_points) == (2000, 1000, 20000)
    assert less.split.train_size == 35000 // 18


@pytest.mark.parametrize(
    ("mode", "filler", "warned"), [("II", 280, 0), ("II", 279, 1), ("III", 279, 0), ("II", 119, 1)]
)
def test_little_filler_of_attack_two_is_warned_of(mode: str, filler: int, warned: int) -> None:
    plan = plan_of("tmia-smoke").changed(
        {"variants": {}, "audit.mode": mode, "split.filler": filler, "split.classes": "even", "transfer.classes": "odd"}
    )
    found = KIND.lay_out(plan, load("digits"), "cpu").warnings
    assert len(found) == warned
    assert all(("give 280 points of filler" if filler > 120 else "split.filler 120 points") in line for line in found)


def test_pools_are_of_one_to_twenty_five_training_sets_and_small_ones_warn() -> None:
    found = settings_of("tmia-pool", plan_of("tmia-fashion14"))
    assert list(found) == [f"pool={size}n/seed={seed}" for size in (1, 5, 15, 25) for seed in range(6, 11)]
    for name, one in found.items():
        split = sizes(one)
        assert f"pool={split.attacker_points // split.train_size}n/seed={one.seed}" == name
        assert check_sizes(own_points(one), split) >= 7 * split.train_size
        warned = any("raw ranks of 5 % come up" in line for line in warnings_of(split, 7 * split.train_size))
        assert warned == (split.attacker_points < 10 * split.train_size)


FEW = (
    "variants={}",
    "split.reference_models=20",
    "audit.reconstruction.models=10",
    "audit.pool_correction=true",
    "audit.beta=0.06",
)


def test_pools_that_a_plan_cannot_have_are_left_out() -> None:
    sizes_of = {
        base: [name.partition("/")[0] for name in settings_of("tmia-pool", plan_of(base, *changes)) if name[-1] == "6"]
        for base, changes in (
            ("tmia-smoke", ()),  # with 12 reference models β = .1 cannot be reached from one training set
            ("tmia-fashion14", ("split.classes=even", "split.attacker_points=20000", "variants={}")),
        )
    }
    assert sizes_of == {
        "tmia-smoke": ["pool=5n", "pool=15n", "pool=25n"],
        "tmia-fashion14": ["pool=1n", "pool=5n"],
    }
    with pytest.raises(BadInput, match="no pool of 1, 5, 15 or 25 training sets"):
        settings_of("tmia-pool", plan_of("tmia-fashion14", "split.classes=even", "split.attacker_points=20000", *FEW))


LADDER = "tmia-transfer-ladder"  # of many settings


@family("name", others := sorted({*SWEPT} - {"tmia-pool"}), default={*range(len(others))} - {others.index(LADDER)})
def test_the_sweeps_fit_other_plans(name: str) -> None:
    """Halves of CIFAR-100 are too small for the plan's training sets, which then shrink."""
    overrides = ["model.settings.dropout=0.0"] if name == "tmia-dropout" else []
    for one in settings_of(name, plan_of("tmia-cifar100", *overrides)).values():
        split = sizes(one)
        assert split.attacker_points >= 10 * split.train_size
        check_sizes(own_points(one), split)


def test_the_architectures_are_of_the_plans_size() -> None:
    small = settings_of("tmia-attack-1", plan_of("tmia-fashion14", "model.settings.hidden=[9]"))
    assert {name: one.model.name for name, one in small.items()} == {"mlp": "mlp", "cnn": "cnn", "resnet18": "resnet18"}
    assert small["mlp"].model.settings["hidden"] == [9]
    assert small["resnet18"].model.settings["width"] == 8
    assert list(settings_of("tmia-attack-1", plan_of("tmia-cifar100"))) == ["vgg16", "vgg19", "resnet50"]
    photographs = settings_of("tmia-attack-1", plan_of("tmia-flowers102"))
    assert list(photographs) == ["vgg16", "vgg19", "resnet50", "inception_v3"]
    assert photographs["vgg19"].model.settings["stem"] == "imagenet"


@family(
    "model",
    ["{name: mlp, settings: {hidden: [5, 5, 5]}}", "{name: cnn, settings: {channels: [2, 3]}}", "{name: vgg16}"],
    default=(0, 1),
)
def test_every_number_of_frozen_layers_is_tried_and_teachers_are_shared(model: str) -> None:
    data = "cifar100" if "vgg" in model else "fashion14"
    plan = plan_of("tmia-fashion14", f"model={model}", f"data.name={data}", "split.attacker_points=20000")
    settings = settings_of("tmia-frozen-layers", plan)
    shape = describe(data).shape
    count = len(layers_of(make_model(plan.model.name, {**plan.model.settings}).build(shape, 10, 0)))
    domains = ("near",) if data == "cifar100" else ("near", "far")
    assert list(settings) == [f"{domain}/n_frozen={number}" for domain in domains for number in range(count)]
    for name, one in settings.items():
        assert one.audit.mode == "II" and one.split == settings["near/n_frozen=0"].split
        assert one.transfer.n_frozen == int(name.rpartition("=")[2])
        near = name.startswith("near")
        assert one.transfer.classes == ("odd" if near else None)
        assert one.transfer.data is None if near else one.transfer.data.name == "digits?size=14"


@family("name, layers", [("tmia-frozen-cnn", 4), ("tmia-frozen-vgg", 14)], default=(0,))
def test_one_command_an_architecture_tries_every_number_of_frozen_layers(name: str, layers: int) -> None:
    plan = plan_of(str(EXAMPLES / f"{name}.yaml"))
    settings = settings_of("tmia-frozen-layers", plan)
    assert list(settings) == [f"{domain}/n_frozen={n}" for domain in ("near", "far") for n in range(layers)]
    for one in settings.values():
        assert (one.model, one.split.train_size, one.split.attacker_points) == (
            plan.model,
            plan.split.train_size,
            20000,
        )
        assert check_sizes(own_points(one), sizes(one)) >= 7 * one.split.train_size


def test_the_far_domain_has_images_of_the_same_shape_and_is_left_out_where_there_is_none(nowhere: Path) -> None:
    far = settings_of("tmia-attack-3", plan_of("tmia-fashion14"))["far"]
    assert far.transfer.data is not None and far.transfer.data.name == "digits?size=14"
    assert far.transfer.train_size < 1797, "none would be left to measure accuracy"
    assert "far" not in settings_of("tmia-attack-3", plan_of("tmia-cifar100"))
    assert "far" not in settings_of("tmia-attack-3", plan_of("tmia-smoke"))
    write_idx_set(nowhere / "fashion-mnist")
    clothes = settings_of("tmia-attack-3", plan_of("tmia-smoke"))["far"]
    assert clothes.transfer.data is not None and clothes.transfer.data.name == "fashion-mnist?size=8"


STUDENTS = ("flowers102", "cifar100", "pubfig83")


def test_fig_3_has_the_papers_three_students_of_caltech101_at_every_number_of_frozen_layers() -> None:
    settings = settings_of("tmia-frozen-layers", plan_of("tmia-caltech101"))
    assert set(settings) == {f"{student}/n_frozen={count}" for student in STUDENTS for count in range(16)}
    for name, one in settings.items():
        assert (one.audit.mode, one.data.name, one.split.classes) == ("II", "caltech101?size=224", None)
        assert one.transfer.data is not None and name.partition("/")[0] in one.transfer.data.name
        assert one.transfer.classes is None and one.transfer.n_frozen == int(name.rpartition("=")[2])


def test_table_2_has_the_papers_three_students_of_caltech101_on_three_architectures() -> None:
    settings = settings_of("tmia-attack-3", plan_of("tmia-caltech101"))
    models = ("vgg16", "vgg19", "resnet50")
    assert set(settings) == {f"{student}/{model}" for student in STUDENTS for model in models}
    for name, one in settings.items():
        student, model = name.split("/")
        assert (one.audit.mode, one.audit.y_star, one.model.name) == ("III", "own", model)
        assert student in one.data.name and one.split.classes is None
        assert one.transfer.data is not None and one.transfer.data.name == "caltech101?size=224"
        assert (one.transfer.train_size, one.transfer.n_frozen, one.transfer.classes) == (5486, 0, None)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["II", "III"])
def test_students_and_teachers_of_the_paper_learn_their_own_data_sets(
    mode: str, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sets_of_the_tmia_paper(nowhere)
    monkeypatch.setenv(source.ORCH_DATA, str(nowhere))
    sized = {
        "split.targets": 2, "split.reference_models": 2, "split.null_models": 2, "split.candidates": 8,
        "split.train_size": 8, "split.attacker_points": 40, "transfer.train_size": 16, "audit.reference_samples": 20,
        "audit.reconstruction": {"points": 4, "models": 2}, "audit.asked": 8, "audit.beta": 0.5,
    }  # fmt: skip
    plan = plan_of("tmia-caltech101", "model.settings.width=1", "variants={}").changed(sized)
    whole = plan_of("tmia-caltech101").resolved()["variants"]
    variants = {
        name: {field: value for field, value in changes.items() if field not in sized}
        for name, changes in whole.items()
    }
    sweep = {"II": "tmia-frozen-layers", "III": "tmia-attack-3"}[mode]
    last = {"II": "n_frozen=13", "III": "vgg16"}[mode]
    settings = settings_of(sweep, plan.changed({"variants": variants}))
    expected = {name: load(name).fingerprint for name in ("caltech101?size=224", "flowers102?size=224", "cifar100")}
    expected["folder:pubfig83?size=100"] = load("folder:pubfig83?size=100").fingerprint
    teachers = set()
    for student, named in zip(STUDENTS, ("flowers102?size=224", "cifar100", "folder:pubfig83?size=100"), strict=True):
        one = settings[f"{student}/{last}"]
        check_against_data(one)
        jobs = [job for job in open_design(one).jobs() if job.stage == "train"]
        first = {job.key: job for job in jobs if "teacher" not in job.document}
        second = [job for job in jobs if "teacher" in job.document]
        assert {job.document["data"] for job in first.values()} == {expected["caltech101?size=224"]}
        assert {job.document["data"] for job in second} == {expected[named]}
        assert all(job.document["teacher"] in first for job in second) and len(first) == len(second) == 2 + 2 + 2 + 4
        teachers.add(frozenset(first))
    assert len(teachers) == 1, "teachers are trained once for all students"


@pytest.mark.parametrize(
    ("sweep", "names"),
    [
        ("tmia-frozen-layers", [f"digits/n_frozen={count}" for count in range(3)]),
        ("tmia-attack-3", ["none", "digits", "digits/true label"]),
    ],
)
def test_the_other_sides_data_of_the_plan_are_obeyed(sweep: str, names: list[str]) -> None:
    plan = plan_of("tmia-fashion14", "transfer.data.name=digits?size=14", "transfer.classes=[1,2,3]")
    settings = settings_of(sweep, plan)
    assert list(settings) == names
    for one in settings.values():
        assert one.split == plan.split
        assert one.transfer == plan.transfer.model_copy(update={"n_frozen": one.transfer.n_frozen})


def test_the_ladder_of_attack_two_shares_teachers_and_names_every_rung() -> None:
    settings = settings_of("tmia-transfer-ladder", plan_of("tmia-fashion14", "transfer.data.name=digits"))
    fits = {"normal": 12, "over-fitted": 96}
    labelled = [
        f"shared={common}of5/{fit}/n_frozen={count}{label}"
        for common in (0, 2, 5)
        for fit in fits
        for count in range(3)
        for label in (("", "/true label") if common else ("",))
    ]
    assert list(settings) == labelled
    check_against_data(plan_of("tmia-fashion14").changed({**SWEEPS["tmia-transfer-ladder"].settings(
        plan_of("tmia-fashion14").resolved())["shared=2of5/normal/n_frozen=1/true label"]}))  # fmt: skip
    for name, one in settings.items():
        common, fit, count, *label = name.split("/")
        even = {0, 2, 4, 6, 8} & set(one.transfer.classes)
        assert (len(one.transfer.classes), len(even)) == (5, int(common[7]))
        assert (one.audit.mode, one.split.classes, one.transfer.data) == ("II", "even", None)
        assert (one.recipe.epochs, (one.transfer.recipe or one.recipe).epochs) == (fits[fit], 12)
        assert one.transfer.n_frozen == int(count[-1]) and one.audit.star == ("true" if label else None)
        assert set(one.audit.attacks) == {"tmia_posterior", "tmia_vector", "lira_oracle"}


def test_classes_of_near_students_are_the_plans_where_it_names_them() -> None:
    plan = plan_of("tmia-fashion14", "split.classes=[0,1,2,3,4]", "transfer.classes=[5,6]")
    near = settings_of("tmia-frozen-layers", plan)["near/n_frozen=1"]
    assert (near.split.classes, near.transfer.classes) == ((0, 1, 2, 3, 4), (5, 6))
    assert (near.split.train_size, near.split.attacker_points) == (2000, 20000)


def test_students_with_and_without_a_teacher_are_judged_alike() -> None:
    settings = settings_of("tmia-attack-3", plan_of("tmia-fashion14"))
    assert {name: (one.audit.mode, one.audit.y_star) for name, one in settings.items()} == {
        "none": ("I", "own"),
        "near": ("III", "own"),
        "near/true label": ("III", "true"),
        "far": ("III", "own"),
    }
    assert len({(one.split, one.recipe, str(one.model)) for one in settings.values()}) == 1
    assert "label_gap" in settings["near/true label"].audit.attacks
    assert "label_gap" not in settings["none"].audit.attacks


def test_one_thing_is_varied_by_its_name() -> None:
    plan = plan_of("tmia-fashion14")
    values = plan.resolved()
    assert {name: one.audit.alpha.quantile for name, one in settings_of("tmia-alpha", plan).items()} == {
        f"quantile={share}": share for share in (0.8, 0.9, 0.95, 0.975, 0.99)
    }
    assert {name: one.model.settings["dropout"] for name, one in settings_of("tmia-dropout", plan).items()} == {
        "dropout=0": 0, "dropout=0.1": 0.1, "dropout=0.25": 0.25, "dropout=0.5": 0.5,
    }  # fmt: skip
    for name, field in (("alpha", "audit.alpha"), ("dropout", "model.settings.dropout"), ("beta", "audit.beta")):
        for changes in SWEEPS[f"tmia-{name}"].settings(values).values():
            assert changed_fields(changes) == {field}


def test_models_go_from_normal_fits_to_over_fitted_ones() -> None:
    settings = settings_of("tmia-overfit", plan_of("tmia-fashion14"))
    assert {name: (one.recipe.epochs, one.split.train_size) for name, one in settings.items()} == {
        "epochs=12": (12, 2000), "epochs=24": (24, 2000), "epochs=48": (48, 2000), "epochs=96": (96, 2000),
        "train_size=500": (12, 500),
    }  # fmt: skip


@pytest.mark.parametrize(("reference", "least"), [(23, 0.05), (24, 0.05), (100, 0.02), (122, 0.01)])
def test_levels_that_no_p_value_reaches_are_left_out(reference: int, least: float) -> None:
    plan = plan_of("tmia-fashion14", f"split.reference_models={reference}", "audit.reconstruction.models=10")
    levels = [one.audit.beta for one in settings_of("tmia-beta", plan).values()]
    assert min(levels) == least and max(levels) == 0.1


@pytest.mark.parametrize("name", ["tmia-attack-1", "tmia-attack-3", "tmia-frozen-layers"])
def test_sweeps_of_plans_with_a_teacher_file_leave_it_out(name: str) -> None:
    changes = ["audit.mode=III", "variants={}", "transfer.teacher=weights.pth", "transfer.teacher_input=imagenet"]
    plan = load_plan("tmia-flowers102", changes)
    assert isinstance(plan, TmiaPlan)
    assert all(one.transfer.teacher is one.transfer.teacher_input is None for one in settings_of(name, plan).values())

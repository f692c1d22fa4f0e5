"""Plans and sweeps of GNQ: every setting loads, keeps its controls, and varies what its name says."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from audits.data.catalogue import describe
from audits.errors import BadInput
from audits.gnq.kept import kept_points
from audits.gnq.private_recipe import private_recipe
from audits.uniqueness.rankings import RANKINGS
from orchestrator.cli.listing import listing
from orchestrator.cli.main import main
from orchestrator.gnq.plan import GnqPlan, Inversion
from orchestrator.gnq.result.arms import at_random, opponents
from orchestrator.kinds import check_against_data, load_plan
from tests.cases.families import family
from tune_spaces import SWEEPS
from tune_spaces.gnq import REMOVED_BY, SEEDS, sizes

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "gnq-fashion-mnist.yaml")
PAPER = ("gnq-cifar10", "gnq-cifar100", "gnq-mnist", "gnq-imdb")
PLANS = (*PAPER, "gnq-tiny-imagenet", "gnq-faces", "gnq-fashion14", "gnq-smoke", EXAMPLE)
SOME = tuple(PLANS.index(name) for name in ("gnq-cifar10", "gnq-imdb", "gnq-fashion14"))
"""Photographs, texts, and the default."""
STAND_INS = {
    "gnq-imdb": ((128,), 2),
    "gnq-tiny-imagenet": ((3, 64, 64), 200),
    "gnq-faces": ((1, 112, 92), 40),
    EXAMPLE: ((1, 28, 28), 10),
}
"""Shape and classes of data that are not known before they are there."""
SWEPT = tuple(name for name in SWEEPS if name.startswith("gnq-"))


@functools.cache
def plan_of(name: str, *overrides: str) -> GnqPlan:
    plan = load_plan(name, overrides)
    assert isinstance(plan, GnqPlan)
    return plan


def settings_of(sweep: str, plan: GnqPlan) -> dict[str, GnqPlan]:
    return {name: plan.changed(changes) for name, changes in SWEEPS[sweep].settings(plan.resolved()).items()}


@family("name", PLANS, default=SOME)
@pytest.mark.parametrize("sweep", SWEPT)
def test_every_setting_of_every_sweep_is_a_plan_of_its_own(sweep: str, name: str) -> None:
    found = settings_of(sweep, plan_of(name))
    assert len({plan.plan_hash for plan in found.values()}) == len(found)
    for plan in found.values():
        warned = [line for line in plan.warnings if "split." in line]
        assert [line for line in warned if name != "gnq-faces" or "pools is 1" not in line] == []  # one pool of faces
        removed = {defence.share for defence in plan.defences if defence.method == "remove"}
        assert all(f"random-{share:g}" in plan.arms for share in removed)


@family("name", PAPER, default=(0, 3))
def test_plans_of_the_paper_fit_data_of_the_known_size(name: str) -> None:
    if name == "gnq-imdb":
        pytest.importorskip("transformers")
        plan = plan_of(name)
        assert plan.split.pools * 2 * plan.split.train_size + plan.split.test <= 50_000
        return
    check_against_data(plan_of(name), absent=True)


@family("name", PLANS, default=SOME)
def test_every_model_of_every_setting_can_be_built_on_the_data_of_the_plan(name: str) -> None:
    plan = plan_of(name)
    facts = describe(plan.data.name, None)
    shape, classes = STAND_INS.get(name) or (facts.shape, len(facts.classes))
    seen = set()
    for setting in (each for sweep in SWEPT for each in settings_of(sweep, plan).values()):
        model = setting.model
        if model.name == "bert":
            pytest.importorskip("transformers")
        if (place := (model.name, str(model.settings))) not in seen:
            seen.add(place)
            with torch.device("meta"):  # builds without numbers: a wide ResNet costs as little as an MLP
                model.architecture().build(shape, classes, seed=0)
    assert seen


def test_bins_of_reviews_have_no_model_of_images_beside_their_own() -> None:
    beside = {name: list(settings_of("gnq-bins", plan_of(name))) for name in PLANS if name != EXAMPLE}
    assert beside["gnq-imdb"] == ["bert"]
    assert beside["gnq-cifar10"] == beside["gnq-tiny-imagenet"] == ["cnn", "resnet18"]
    assert beside["gnq-mnist"] == ["mlp", "cnn"]


@pytest.mark.parametrize("command", [["sweep", "gnq-odd"], ["cost", "--sweep", "gnq-odd"]])
def test_a_setting_that_does_not_fit_is_refused_before_any_work(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"base": {}, "wide": {"model": {"name": "bert", "settings": {"vocabulary": 20}}}}
    odd = replace(SWEEPS["gnq-bins"], name="gnq-odd", base="gnq-smoke", varies=lambda plan: settings)
    monkeypatch.setattr(SWEEPS, "_entries", SWEEPS._entries | {"gnq-odd": odd})
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    said = capsys.readouterr().err.strip()
    assert "setting wide: model" in said and "\n" not in said
    assert not list(tmp_path.iterdir())


def test_a_folder_of_small_images_fits_the_plan_for_tiny_imagenet(tmp_path: Path) -> None:
    for name in ("n01443537", "n02124075"):
        folder = tmp_path / "tiny-imagenet-200" / "train" / name / "images"
        folder.mkdir(parents=True)
        for number in range(4):
            (folder / f"{name}_{number}.ppm").write_bytes(b"P6\n64 64\n255\n" + bytes(64 * 64 * 3))
    plan = plan_of("gnq-tiny-imagenet", f"data.root={tmp_path}", "model.settings.width=2")
    assert describe(plan.data.name, plan.data.root).shape == (3, 64, 64)
    with pytest.raises(BadInput, match="are 60000, but folder:tiny-imagenet-200/train"):
        check_against_data(plan)
    assert list(plan.arms) == ["none", "gnq_log-0.2", "loss_log-0.2", "random-0.2", "dp-8"]


def test_table_one_has_every_arm_at_the_share_of_the_plan() -> None:
    (plan,) = settings_of("gnq-table1", plan_of("gnq-cifar10")).values()
    assert list(plan.arms) == [
        "none",
        *(f"{name}-0.1" for name in ("gnq_log", "gnq_sum", "diagonal", "loss_log", "final_loss", "gradient_norm")),
        "twin_loss-0.1",
        "random-0.1",
        *("noise-gnq_log-0.1-1", "noise-random-0.1-1"),
        *("dp-2", "dp-8", "dp-512"),
    ]
    against = opponents(plan)
    assert [arm for arm, other in against if other == "none"] == list(plan.arms)[1:]
    assert [(arm, other) for arm, other in against if "noise" in arm and other != "none"] == [
        ("noise-gnq_log-0.1-1", "noise-random-0.1-1")
    ]
    assert [other for arm, other in against if arm == "diagonal-0.1"] == ["none", "random-0.1", "loss_log-0.1"]
    assert at_random(plan) == {f"{name}-0.1": "random-0.1" for name in REMOVED_BY if name != "random"}
    recipes = [defence.recipe for defence in plan.defences if defence.recipe is not None]
    assert {(recipe.learning_rate, recipe.delta) for recipe in recipes} == {(0.5, 1e-5)}


@pytest.mark.parametrize(
    ("change", "ranking"),
    [
        ("audit.held_out=4", "held_out_loss"),
        ("audit.in_batch=true", "in_batch"),
        ("audit.modes=[ridge, diagonal, pinv]", "pinv_sum"),
    ],
)
def test_table_one_ranks_by_batches_and_by_the_papers_mode_where_they_are_looked_at(change: str, ranking: str) -> None:
    wanted = {"method": "remove", "ranking": ranking, "share": 0.2}
    for changes, found in (([], False), ([change], True)):
        plan = load_plan("gnq-fashion14", changes).model_dump(mode="json")
        assert (wanted in SWEEPS["gnq-table1"].settings(plan)["base"]["defences"]) == found


def test_table_one_makes_a_private_recipe_where_the_plan_has_none() -> None:
    (plan,) = settings_of("gnq-table1", plan_of("gnq-mnist")).values()
    recipes = [defence.recipe for defence in plan.defences if defence.recipe is not None]
    assert [recipe.target_epsilon for recipe in recipes] == [2.0, 8.0, 512.0]
    assert recipes == [private_recipe(epsilon) for epsilon in (2.0, 8.0, 512.0)]
    (warned,) = (line for line in plan.warnings if "recipe of DP-SGD" in line)
    assert warned.startswith("defences.10, defences.11, defences.12: the default recipe")
    assert not [line for line in plan_of("gnq-fashion14").warnings if "recipe of DP-SGD" in line]
    few = SWEEPS["gnq-table1"].settings(plan_of("gnq-mnist", "split.train_size=60").resolved())["base"]["defences"]
    assert [entry["recipe"]["batch_size"] for entry in few if entry["method"] == "dp_sgd"] == [60] * 3


def test_training_varies_one_thing_at_a_time() -> None:
    base = plan_of("gnq-fashion14")
    found = settings_of("gnq-training", base)
    assert list(found) == [
        *("base", "epochs=10", "epochs=90", "points=250", "points=500", "batch=10", "batch=200"),
        *("rate=0.0005", "rate=0.008", "hidden=32x32", "hidden=512x512"),
    ]
    assert found["points=250"].split.train_size == 250
    assert found["hidden=32x32"].model.settings["hidden"] == [32, 32]
    for name, plan in found.items():
        assert list(plan.arms) == ["none"]
        changed = [
            section for section in ("split", "recipe", "model") if plan.resolved()[section] != base.resolved()[section]
        ]
        assert len(changed) == (name != "base")


@pytest.mark.parametrize("name", ["gnq-fashion14", "gnq-faces", "gnq-mnist"])
def test_inversion_removes_one_point_and_keeps_the_search_of_the_plan(name: str) -> None:
    base = plan_of(name)
    (plan,) = settings_of("gnq-inversion", base).values()
    assert plan.audit.inversion == (base.audit.inversion or Inversion())
    assert [defence.ranking for defence in plan.defences] == ["gnq_log", "loss_log", "random"]
    points = base.split.train_size
    half = np.ones((1, points), bool)
    for defence in plan.defences:
        kept = kept_points(half, np.arange(points)[None], float(defence.share or 0))
        assert np.flatnonzero(~kept[0]).tolist() == [points - 1]
    assert plan.notes == base.notes


def test_gradient_inversion_varies_the_model_alone_and_has_a_positive_control() -> None:
    found = settings_of("gnq-gradient-inversion", plan_of("gnq-fashion14"))
    assert list(found) == ["cnn", "cnn-tanh", "mlp"]
    asked = {name: plan.audit.gradient_inversion for name, plan in found.items()}
    assert all(each is not None and each.points == 16 and each.batches == (1, 8) for each in asked.values())
    assert [each.methods for each in asked.values() if each] == [("dlg", "geiping"), ("dlg", "geiping"), ("analytic",)]
    for plan in found.values():
        check_against_data(plan)
    (alone,) = settings_of("gnq-gradient-inversion", plan_of("gnq-imdb")).values()
    assert alone.model.name == "bert"


def test_the_plan_for_faces_takes_all_images_as_they_are(tmp_path: Path) -> None:
    for person in range(1, 41):
        (tmp_path / "att_faces" / f"s{person}").mkdir(parents=True)
        for number in range(1, 11):
            header = b"P5\n92 112\n255\n"
            (tmp_path / "att_faces" / f"s{person}" / f"{number}.pgm").write_bytes(header + bytes([number]) * 92 * 112)
    plan = plan_of("gnq-faces", f"data.root={tmp_path}")
    check_against_data(plan)
    assert describe(plan.data.name, plan.data.root).shape == (1, 112, 92)
    smaller = ["split.pools=2", "split.train_size=90", "split.test=40"]
    check_against_data(plan_of("gnq-faces", f"data.root={tmp_path}", *smaller))
    arms = settings_of("gnq-inversion", plan)["base"].arms
    assert arms.keys() == plan.arms.keys()  # one image of 160 in both


def test_an_architecture_without_units_is_not_varied_in_size() -> None:
    assert sizes({"name": "resnet18", "settings": {"width": 64}}).keys() == {"width=32", "width=128"}
    assert sizes({"name": "odd", "settings": {}}) == {}


def test_rankings_are_listed() -> None:
    assert [name for name, _ in listing("rankings")] == list(RANKINGS)
    assert all(text for _, text in listing("rankings"))
    assert {"gnq: Minus the loss (Yeom et al., arXiv 1709.01604): no shadows."} <= {
        text for _, text in listing("attacks")
    }


def test_seeds_vary_nothing_but_the_seed() -> None:
    base = plan_of("gnq-fashion14")
    found = settings_of("gnq-seeds", base)
    assert [plan.seed for plan in found.values()] == [1, 2, 3, 4, 5] == list(SEEDS)
    for plan in found.values():
        assert list(plan.arms) == ["none", "gnq_log-0.2", "twin_loss-0.2", "loss_log-0.2", "random-0.2"]
        assert plan.changed({"seed": 0}).model_dump(exclude={"defences"}) == base.model_dump(exclude={"defences"})


def test_the_ridge_goes_from_a_hundredth_to_a_hundred_times_the_plans() -> None:
    base = plan_of("gnq-fashion14")
    found = settings_of("gnq-ridge", base)
    assert [plan.audit.ridge for plan in found.values()] == [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    assert all(plan.recipe == base.recipe and list(plan.arms) == ["none"] for plan in found.values())

"""Plans and sweeps of GNQ: every setting loads, keeps its controls, and varies what its name says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audits.data.catalogue import describe
from audits.disclosure.rankings import RANKINGS
from audits.disclosure.twins import kept_points
from orchestrator.disclosure.plan import DisclosurePlan, Inversion
from orchestrator.listing import listing
from orchestrator.plan import load_plan
from orchestrator.plan_checks import check_against_data
from tune_spaces import SWEEPS

EXAMPLE = str(Path(__file__).resolve().parent.parent / "examples" / "gnq-fashion-mnist.yaml")
PAPER = ("gnq-cifar10", "gnq-cifar100", "gnq-mnist", "gnq-imdb")
PLANS = (*PAPER, "gnq-faces", "gnq-fashion14", "gnq-smoke", EXAMPLE)
SWEPT = tuple(name for name in SWEEPS if name.startswith("gnq-"))


def plan_of(name: str, *overrides: str) -> DisclosurePlan:
    plan = load_plan(name, overrides)
    assert isinstance(plan, DisclosurePlan)
    return plan


def settings_of(sweep: str, plan: DisclosurePlan) -> dict[str, DisclosurePlan]:
    return {name: plan.changed(changes) for name, changes in SWEEPS[sweep].settings(plan.resolved()).items()}


@pytest.mark.parametrize("sweep", SWEPT)
@pytest.mark.parametrize("name", PLANS)
def test_every_setting_of_every_sweep_is_a_plan_of_its_own(sweep: str, name: str) -> None:
    found = settings_of(sweep, plan_of(name))
    assert len({plan.plan_hash for plan in found.values()}) == len(found)
    for plan in found.values():
        warned = [line for line in plan.warnings if "split." in line]
        assert [line for line in warned if name != "gnq-faces" or "seeds is 1" not in line] == []  # one pool of faces
        removed = {defence.share for defence in plan.defences if defence.method == "remove"}
        assert all(f"random-{share:g}" in plan.arms for share in removed)


@pytest.mark.parametrize("name", PAPER)
def test_plans_of_the_paper_fit_data_of_the_known_size(name: str) -> None:
    if name == "gnq-imdb":
        pytest.importorskip("transformers")
        plan = plan_of(name)
        assert plan.split.seeds * 2 * plan.split.train_size + plan.split.test <= 50_000
        return
    check_against_data(plan_of(name), absent=True)


def test_table_one_has_every_arm_at_the_share_of_the_plan() -> None:
    (plan,) = settings_of("gnq-table1", plan_of("gnq-cifar10")).values()
    assert list(plan.arms) == [
        "none",
        *(f"{name}-0.1" for name in ("gnq_log", "gnq_sum", "diagonal", "loss_log", "final_loss", "gradient_norm")),
        "random-0.1",
        "noise-gnq_log-0.1-1",
        *("dp-2", "dp-8", "dp-512"),
    ]
    recipes = [defence.recipe for defence in plan.defences if defence.recipe is not None]
    assert {(recipe.learning_rate, recipe.delta) for recipe in recipes} == {(0.5, 1e-5)}


def test_table_one_ranks_by_batches_where_they_are_looked_at() -> None:
    plan = load_plan("gnq-fashion14", ["audit.in_batch=true"]).model_dump(mode="json")
    arms = SWEEPS["gnq-table1"].settings(plan)["base"]["defences"]
    assert {"method": "remove", "ranking": "in_batch", "share": 0.2} in arms


def test_table_one_makes_a_private_recipe_where_the_plan_has_none() -> None:
    (plan,) = settings_of("gnq-table1", plan_of("gnq-mnist")).values()
    recipes = [defence.recipe for defence in plan.defences if defence.recipe is not None]
    assert [recipe.target_epsilon for recipe in recipes] == [2.0, 8.0, 512.0]
    assert all(recipe.batch_size == 50 for recipe in recipes)


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


def test_the_plan_for_faces_takes_all_images_as_they_are(tmp_path: Path) -> None:
    for person in range(1, 41):
        (tmp_path / "att_faces" / f"s{person}").mkdir(parents=True)
        for number in range(1, 11):
            header = b"P5\n92 112\n255\n"
            (tmp_path / "att_faces" / f"s{person}" / f"{number}.pgm").write_bytes(header + bytes([number]) * 92 * 112)
    plan = plan_of("gnq-faces", f"data.root={tmp_path}")
    check_against_data(plan)
    assert describe(plan.data.name, plan.data.root).shape == (1, 112, 92)
    smaller = ["split.seeds=2", "split.train_size=90", "split.test=40"]
    check_against_data(plan_of("gnq-faces", f"data.root={tmp_path}", *smaller))
    arms = settings_of("gnq-inversion", plan)["base"].arms
    assert arms.keys() == plan.arms.keys()  # one image of 160 in both


def test_an_architecture_without_units_is_not_varied_in_size() -> None:
    from tune_spaces.gnq import sizes

    assert sizes({"name": "resnet18", "settings": {"width": 64}}).keys() == {"width=32", "width=128"}
    assert sizes({"name": "odd", "settings": {}}) == {}


def test_rankings_are_listed() -> None:
    assert [name for name, _ in listing("rankings")] == list(RANKINGS)
    assert all(text for _, text in listing("rankings"))
    assert {"gnq: Minus the loss (Yeom et al., arXiv 1709.01604): no shadows."} <= {
        text for _, text in listing("attacks")
    }

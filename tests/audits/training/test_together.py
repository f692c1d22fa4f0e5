"""A model of several workers is that of one at the same batches, up to rounding; a lost one goes on to equal bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gnq.noise import fit_noised
from audits.models import make_model
from audits.training.fit import fit
from audits.training.keeper import NEVER, Keeper
from audits.training.loop import EpochReport
from audits.training.recipe import Recipe
from audits.training.team import ALONE, KeptByFirst, Team
from audits.uniqueness.accumulate import Trace, fit_traced
from audits.unlearning import UNLEARNERS, make_unlearner
from benchmarks.team_processes import by_team
from tests.audits.unlearning.cases import FORGET, RETAIN, SETTINGS
from tests.audits.unlearning.cases import points as table
from tests.cases.families import thinned
from tests.cases.lost import Lost, UntilStep

POINTS, CLASSES, SHAPE = 21, 3, (1, 8, 8)
SGD = Recipe(optimizer="sgd", learning_rate=0.05, epochs=3, batch_size=8)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "cnn": ("cnn", {}),
    "resnet18": ("resnet18", {"width": 4}),
    "mlp": ("mlp", {"hidden": [9, 7], "batch_norm": True}),
}
RECIPES = {
    "momentum": SGD,
    "uneven shares": replace(SGD, batch_size=7),  # 4 + 3 points
    "a batch of three": replace(SGD, batch_size=9),  # which nobody shares
    "augmented": replace(SGD, augment_shift=2, flip=True),
    "adamw": replace(SGD, optimizer="adamw", learning_rate=0.01, schedule="cosine"),
    "clipped": replace(SGD, clip_norm=0.05, label_smoothing=0.1),
}
CASES = [("cnn", recipe) for recipe in RECIPES] + [("resnet18", "uneven shares"), ("mlp", "momentum")]
SHORT = [("cnn", "uneven shares"), ("cnn", "augmented"), ("mlp", "momentum")]
METHODS = ("scrub", "sfr_on")
"""Cases and methods that stand for the others."""
STEPS = 9
"""Of a training by ``SGD``."""
LOST_AT = (4, 1, STEPS)
"""Steps behind which it is lost: one in the midst of an epoch, by long tests its first and its last, too."""

pytestmark = pytest.mark.slow  # two or three processes that import torch

Told = tuple[list[float], dict[str, torch.Tensor]]


def points(dtype: torch.dtype) -> TensorSet:
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(POINTS, *SHAPE, generator=generator, dtype=torch.float64).to(dtype)
    return TensorSet(x, torch.randint(CLASSES, (POINTS,), generator=generator))


def trained(
    team: Team, model: str, recipe: Recipe, dtype: torch.dtype = torch.float64, keeper: Keeper = NEVER, **own: Any
) -> Told:
    """Return the loss of each epoch and the weights of a training."""
    name, settings = MODELS[model]
    losses: list[float] = []

    def note(report: EpochReport) -> None:
        losses.append(report.loss)

    found = make_model(name, settings | own).build(SHAPE, CLASSES, 1).to(dtype)
    fit(found, points(dtype), recipe, seed=3, observers=(note,), keeper=keeper, team=team)
    return losses, found.state_dict()


def unlearned(team: Team, name: str) -> dict[str, torch.Tensor]:
    def build(seed: int) -> nn.Module:
        return make_model("mlp", {"hidden": [8], "batch_norm": True}).build((5,), 3, seed).double()

    forget, retain = table(FORGET, 1, torch.float64), table(RETAIN, 2, torch.float64)
    method = make_unlearner(name, SETTINGS[name])
    found = method.unlearn(build(1).eval(), forget, retain, seed=4, recipe=SGD, build=build, team=team)
    return found.state_dict()


def lost_and_resumed(team: Team, step: int, settings: dict[str, Any]) -> tuple[Told, int]:
    """Return what a training is that all lose behind ``step``; where it stood only the first worker has."""
    first = UntilStep(step)
    with pytest.raises(Lost):
        trained(team, "mlp", SGD, keeper=first, **settings)
    second = UntilStep(files=first.files if team.leads else None)
    return trained(team, "mlp", SGD, keeper=KeptByFirst(second, team), **settings), second.steps


def looked_at(team: Team) -> Trace:
    model, recipe = make_model("mlp", {"hidden": [9, 7]}).build(SHAPE, CLASSES, 1).double(), replace(SGD, epochs=1)
    return fit_traced(model, points(torch.float64), recipe, seed=3, every=2, in_batch=True, team=team)


def noised(team: Team) -> dict[str, torch.Tensor]:
    model = make_model("cnn", {}).build(SHAPE, CLASSES, 1).double()
    marked = np.arange(POINTS) % 3 == 0
    return fit_noised(model, points(torch.float64), SGD, seed=3, marked=marked, scale=0.1, team=team).state_dict()


def everything(team: Team, long: bool) -> dict[Any, Any]:
    """Return all that this module compares; ``long``: also by its long tests."""
    apart = replace(team, sync_batch_norm=False)
    found: dict[Any, Any] = {case: trained(team, case[0], RECIPES[case[1]]) for case in (CASES if long else SHORT)}
    found |= {name: unlearned(team, name) for name in (SETTINGS if long else METHODS)}
    found["float32"] = trained(team, "cnn", SGD, torch.float32)
    if long:
        found["bfloat16"] = trained(team, "cnn", replace(SGD, dtype="bfloat16"), torch.float32)
    found["looked at"], found["noised"] = looked_at(team), noised(team)
    found["apart"] = trained(apart, "mlp", SGD)
    for name, by, settings in (("synced", team, {"dropout": 0.3}), ("own statistics", apart, {"dropout": 0.3})):
        found[name] = trained(by, "mlp", SGD, **settings)
        lost = LOST_AT if long else LOST_AT[:1]
        found[f"{name}, lost"] = {step: lost_and_resumed(by, step, settings) for step in lost}
    return found


def of_three(team: Team) -> dict[Any, Any]:
    return {"whole": trained(team, "cnn", SGD), "lost": lost_and_resumed(team, 4, {}), "mlp": trained(team, "mlp", SGD)}


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[Any, Any]]:
    long = "not long" not in request.config.getoption("markexpr")
    return by_team(2, tmp_path_factory.mktemp("team") / "two", everything, long)


def gap(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> float:
    assert one.keys() == two.keys()
    return max(float((one[name].double() - two[name].double()).abs().max()) for name in one)


def kept(state: dict[str, torch.Tensor], first: bool) -> dict[str, torch.Tensor]:
    """Return what counts of a worker's model: running statistics are those of the first one."""
    return {name: value for name, value in state.items() if first or "running" not in name}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.long] * (case not in SHORT)) for case in CASES], ids=", ".join
)
def test_two_workers_train_the_model_of_one_up_to_rounding(both: list[Any], case: tuple[str, str]) -> None:
    losses, state = trained(ALONE, case[0], RECIPES[case[1]])
    assert both[0][case][0] == pytest.approx(losses, abs=1e-11)
    assert gap(both[0][case][1], state) < 1e-10


def test_in_float32_the_loss_curves_agree_to_its_rounding(both: list[Any]) -> None:
    losses, state = trained(ALONE, "cnn", SGD, torch.float32)
    assert both[0]["float32"][0] == pytest.approx(losses, rel=1e-6)
    assert gap(both[0]["float32"][1], state) < 1e-5


@pytest.mark.long
def test_in_bfloat16_they_agree_to_its_rounding(both: list[Any]) -> None:
    losses, _ = trained(ALONE, "cnn", replace(SGD, dtype="bfloat16"), torch.float32)
    assert both[0]["bfloat16"][0] == pytest.approx(losses, rel=1e-3)


@pytest.mark.parametrize("name", thinned(SETTINGS, METHODS))
def test_two_workers_unlearn_as_one_does_up_to_rounding(both: list[Any], name: str) -> None:
    assert gap(both[0][name], unlearned(ALONE, name)) < 1e-10


def test_two_workers_see_of_the_points_what_one_sees(both: list[Any]) -> None:
    alone = looked_at(ALONE)
    for each in both:
        found = each["looked at"]
        assert found.steps.tolist() == alone.steps.tolist()
        assert found.gnq["ridge"] == pytest.approx(alone.gnq["ridge"], rel=1e-8)
        assert found.in_batch.steps.tolist() == alone.in_batch.steps.tolist()
        assert found.in_batch.log["ridge"] == pytest.approx(alone.in_batch.log["ridge"], rel=1e-8)


def test_noise_on_gradients_is_that_of_one_worker(both: list[Any]) -> None:
    alone = noised(ALONE)
    assert gap(both[0]["noised"], alone) < 1e-10
    assert gap(alone, trained(ALONE, "cnn", SGD)[1]) > 1e-3


def test_every_method_is_among_them() -> None:
    assert set(SETTINGS) == set(UNLEARNERS)


def test_all_workers_have_the_same_model(both: list[Any]) -> None:
    for case in (*SHORT, "float32", "synced", "own statistics"):
        assert both[0][case][0] == both[1][case][0]
        assert gap(*(kept(each[case][1], first=False) for each in both)) == 0


def test_statistics_of_shares_give_another_model(both: list[Any]) -> None:
    assert gap(both[0]["apart"][1], trained(ALONE, "mlp", SGD)[1]) > 1e-3


@pytest.mark.parametrize("name", ["synced", "own statistics"])
def test_a_lost_training_goes_on_from_what_the_first_worker_kept_to_equal_bits(both: list[Any], name: str) -> None:
    for each in both:
        for step, (found, after) in each[f"{name}, lost"].items():
            assert found[0] == each[name][0][-len(found[0]) :] if found[0] else step == STEPS
            assert gap(kept(found[1], each is both[0]), kept(each[name][1], each is both[0])) == 0
            assert after == (STEPS - step if each is both[0] else 0)


@pytest.mark.long
def test_three_workers_train_it_too_and_go_on_to_equal_bits(tmp_path: Any) -> None:
    found = by_team(3, tmp_path / "three", of_three)
    losses, state = trained(ALONE, "cnn", SGD)
    for each in found:
        assert each["whole"][0] == pytest.approx(losses, abs=1e-11)
        assert gap(each["whole"][1], state) < 1e-10
        assert gap(each["lost"][0][1], each["mlp"][1]) == 0


def test_what_one_worker_trains_by_itself_is_refused() -> None:
    for changes in ({"noise_multiplier": 1.0, "max_grad_norm": 1.0}, {"fit": "python:own:fit"}):
        with pytest.raises(BadInput, match=r"leave compute\.workers_per_model out$"):
            fit(nn.Linear(2, 2), points(torch.float32), replace(SGD, **changes), seed=1, team=Team(0, 2))


def test_shares_cut_a_batch_in_its_order() -> None:
    for size in (1, 2, 3, 5):
        for count in range(1, 24):
            shares = [range(count)[Team(rank, size).share(count)] for rank in range(size)]
            if count < 2 * size:
                assert shares == [range(count)] * size
            else:
                assert [row for share in shares for row in share] == list(range(count))
                assert min(map(len, shares)) > 1 or size == 1

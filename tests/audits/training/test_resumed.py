"""A training that is lost behind any of its steps and resumed ends with the weights of an undisturbed one, all bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.training.fit import fit, train_model
from audits.training.keeper import NEVER, Keeper, Phases, Snapshot
from audits.training.loop import EpochReport
from audits.training.optimizer_state import optimizer_snapshot, resume_optimizer
from audits.training.recipe import Recipe
from audits.training.transfer import train_student
from tests.cases.families import thinned
from tests.cases.lost import Lost, UntilStep, lost_and_resumed, steps_of

POINTS, CLASSES, SHAPE = 20, 3, (1, 8, 8)
SGD = Recipe(optimizer="sgd", learning_rate=0.1, epochs=3, batch_size=8)
PRIVATE = replace(SGD, noise_multiplier=0.7, max_grad_norm=0.5)
RECIPES = {
    "momentum": SGD,
    "no momentum": replace(SGD, momentum=0.0),
    "adam": replace(SGD, optimizer="adam", learning_rate=0.01),
    "adamw": replace(SGD, optimizer="adamw", learning_rate=0.01),
    "cosine": replace(SGD, schedule="cosine"),
    "augmented": replace(SGD, augment_shift=2, flip=True),
    "bfloat16": replace(SGD, dtype="bfloat16", clip_norm=0.5, label_smoothing=0.1),
    "private": replace(PRIVATE, schedule="cosine", augment_shift=1),
    "private by opacus": replace(PRIVATE, private_engine="opacus", optimizer="adam"),
}


def points() -> TensorSet:
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(POINTS, *SHAPE, generator=generator)
    return TensorSet(x, torch.randint(CLASSES, (POINTS,), generator=generator))


def build(seed: int, classes: int = CLASSES, batch_norm: bool = True) -> nn.Module:
    settings = {"hidden": [9, 7], "batch_norm": batch_norm, "dropout": 0.3}
    return make_model("mlp", settings).build(SHAPE, classes, seed)


def trained(recipe: Recipe) -> Callable[[Keeper], nn.Module]:
    return lambda keeper: train_model(
        lambda seed: build(seed, batch_norm=not recipe.private), points(), recipe, 3, keeper
    )


def same(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", thinned(RECIPES, ("momentum", "adam", "augmented", "bfloat16", "private")))
def test_a_training_lost_behind_any_step_ends_as_an_undisturbed_one(name: str) -> None:
    train = trained(RECIPES[name])
    whole, total = train(NEVER), steps_of(train)
    assert total == 9
    for step in (2, 3, total) if not RECIPES[name].private else (2,):  # 3 a pass
        found, after = lost_and_resumed(train, step)
        assert same(found, whole)
        assert after == total - step  # steps that were taken are not taken again


def test_a_training_may_be_lost_more_than_once() -> None:
    train, keeper = trained(RECIPES["adamw"]), UntilStep()
    for _ in range(4):
        keeper = UntilStep(2, keeper.files)
        with pytest.raises(Lost):
            train(keeper)
    assert same(train(UntilStep(files=keeper.files)), train(NEVER))


def test_a_students_frozen_layers_and_their_statistics_are_kept() -> None:
    teacher, data = train_model(build, points(), SGD, 1), TensorSet(points().x, points().y % 2)

    def train(keeper: Keeper) -> nn.Module:
        return train_student(teacher, lambda classes, seed: build(seed, classes), 2, 1, data, SGD, 3, keeper=keeper)

    assert same(lost_and_resumed(train, 4)[0], train(NEVER))


def test_observers_learn_the_losses_of_whole_epochs() -> None:
    def losses(keeper: Keeper) -> list[float]:
        reports: list[EpochReport] = []
        fit(build(1), points(), SGD, seed=3, observers=(reports.append,), keeper=keeper)
        return [report.loss for report in reports]

    assert lost_and_resumed(losses, 5)[0] == losses(NEVER)[1:]


def test_the_generators_of_the_caller_stay_where_they_were() -> None:
    keeper = UntilStep(5)
    with pytest.raises(Lost):
        trained(SGD)(keeper)
    before = torch.get_rng_state()
    trained(SGD)(UntilStep(files=keeper.files))
    assert torch.equal(torch.get_rng_state(), before)


def test_of_several_trainings_of_a_job_those_that_ended_are_not_taken_again() -> None:
    def both(keeper: Keeper) -> tuple[nn.Module, nn.Module]:
        phases = Phases(keeper)
        first = train_model(build, points(), SGD, 1, phases.of("first"))
        return first, train_model(build, points(), SGD, 2, phases.of("second"))

    whole, total = both(NEVER), steps_of(both)
    for step in (4, 9, 14):
        found, after = lost_and_resumed(both, step)
        assert all(same(*pair) for pair in zip(found, whole, strict=True))
        assert after == total - step


def test_an_optimisers_memory_comes_back_in_the_layout_of_its_weights() -> None:
    def optimizer() -> torch.optim.Optimizer:
        weight = torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last).requires_grad_()
        made = torch.optim.Adam([weight])
        weight.grad = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(1)).to(
            memory_format=torch.channels_last
        )
        made.step()
        return made

    one, two = optimizer(), optimizer()
    snapshot = optimizer_snapshot(one).copied()
    for held in two.state.values():
        held["exp_avg"].zero_()
    rows = {name: tensor.contiguous() for name, tensor in snapshot.tensors.items()}
    resume_optimizer(two, Snapshot(rows, snapshot.notes))
    for (_, first), (_, second) in zip(one.state.items(), two.state.items(), strict=True):
        assert torch.equal(first["exp_avg"], second["exp_avg"])
        assert first["exp_avg"].stride() == second["exp_avg"].stride()
    assert one.param_groups[0]["betas"] == two.param_groups[0]["betas"]

"""Train one model from scratch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from audits.data.tensors import TensorSet, devices_of
from audits.errors import BadInput
from audits.models.finite import check_finite
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.backward import Backward
from audits.training.keeper import NEVER, Keeper
from audits.training.loop import (
    EpochReport,
    Observer,
    batches,
    drawn_shifts,
    entropy_of,
    make_optimizer,
    make_schedule,
    shifted,
    step,
    train_mode,
    views_of,
)
from audits.training.own import fit_by_own
from audits.training.private import fit_private
from audits.training.recipe import Recipe
from audits.training.steps import Steps, global_generators
from audits.training.team import ALONE, Team
from audits.training.together import forward_of


def fit(
    model: nn.Module,
    data: TensorSet,
    recipe: Recipe,
    *,
    seed: int,
    observers: tuple[Observer, ...] = (),
    keeper: Keeper = NEVER,
    team: Team = ALONE,
) -> nn.Module:
    """Train ``model`` in place on ``data`` by ``recipe`` and return it in eval mode.

    The order of the points and the augmentation depend on ``seed`` only (drawn on the CPU). A batch of a single
    point is joined to the one before it, so that BatchNorm always has statistics. Raises ``BadInput`` on empty data
    and ``FloatingPointError`` when the loss is not finite. A private recipe is trained by ``private.fit_private``,
    one with ``fit`` by the code that it names (``own.fit_by_own``). A training that ``keeper`` has a snapshot of goes
    on from there (``steps``), but for one by a user's own code, which it never sees. ``team``: the workers that train
    it together, which all call this; BadInput for what only one can train.
    """
    check_shared(recipe, team)
    if len(data) == 0:
        raise BadInput("training set is empty; give at least one point")
    if recipe.fit is not None:
        if observers:
            raise BadInput("recipe.fit is a user's own training, which nobody can watch; leave it out")
        return fit_by_own(model, data, recipe, seed)
    if recipe.private:
        return fit_private(model, data, recipe, seed=seed, observers=observers, keeper=keeper)
    train_mode(model)
    optimizer = make_optimizer(model, recipe)
    schedule = make_schedule(optimizer, recipe.schedule, recipe.epochs)
    order = torch_generator(derive_seed(seed, Purpose.ORDER))
    noise = torch_generator(derive_seed(seed, Purpose.AUGMENT))
    total = torch.zeros((), device=data.y.device)
    generators = {"augment": noise, **global_generators(devices_of(data))}
    backward = Backward(model, entropy_of(forward_of(model, team), recipe), team)
    steps = Steps(keeper, model, optimizer, schedule, order, generators, {"loss": total})
    with torch.random.fork_rng(devices=devices_of(data)):
        torch.manual_seed(derive_seed(seed, Purpose.DROPOUT))
        for epoch in steps.epochs(recipe.epochs):
            views = views_of(recipe, seed, epoch)
            flip = recipe.flip and views is None  # views are mirrored already
            left = list(steps.left(batches(len(data), recipe.batch_size, order)))
            for x, y in steps.each_step(data.batches(left, views, team.share)):
                if recipe.augment_shift or flip:
                    drawn = drawn_shifts(len(y), recipe.augment_shift, flip, noise)
                    x = shifted(x, recipe.augment_shift, flip, drawn[team.share(len(y))])
                total += step(backward, optimizer, recipe.clip_norm, x, y) * len(y)
            schedule.step()
            loss = float(total) / len(data)
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"training diverged in epoch {epoch + 1} of {recipe.epochs}: the loss is {loss}; "
                    "lower the learning rate"
                )
            for observer in observers:
                observer(EpochReport(epoch, loss, len(data)))
    check_finite(model)
    return model.eval()


def check_shared(recipe: Recipe, team: Team) -> None:
    """Refuse what several workers cannot train together."""
    if team.size == 1:
        return
    if recipe.private:
        raise BadInput("recipe is private, which one worker trains by itself; leave compute.workers_per_model out")
    if recipe.fit is not None:
        raise BadInput(
            "recipe.fit is a user's own training, which one worker does; leave compute.workers_per_model out"
        )


def train_model(
    build: Callable[[int], nn.Module],
    data: TensorSet,
    recipe: Recipe,
    seed: int,
    keeper: Keeper = NEVER,
    team: Team = ALONE,
) -> nn.Module:
    """Return a new model trained on ``data``: how targets, shadows and retrained models are all made.

    ``build`` returns a freshly initialised module for a seed. The model stands on the device of ``data``.
    """
    model = build(derive_seed(seed, Purpose.INIT)).to(data.y.device)
    return fit(model, data, recipe, seed=derive_seed(seed, Purpose.FIT), keeper=keeper, team=team)

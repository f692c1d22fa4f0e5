"""Differentially private training: DP-SGD (Abadi et al., arXiv 1607.00133).

Each step draws every point by a coin of its own (Poisson sampling), bounds each point's gradient, adds Gaussian noise
to their sum and divides by the expected batch size. ``recipe.private_engine`` names the engine that does it, one of
``audits.training.engines``. Both draw the same points and the same noise, so their models differ by rounding (and by
dropout, where a batch is summed in other parts).

``accounting`` counts the privacy that is spent.

The noise comes from torch's generator, so that equal seeds give equal weights. That is right for an audit; a model that
is handed out needs noise that nobody can draw again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import nn

from audits.data.tensors import TensorSet, devices_of
from audits.gradients.model_copies import quiet
from audits.models.finite import check_finite
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.accounting import noise_of, steps_per_epoch
from audits.training.engines.base import ENGINES, Noise
from audits.training.keeper import NEVER, Keeper
from audits.training.loop import EpochReport, Observer, make_schedule
from audits.training.recipe import Recipe
from audits.training.steps import Steps, global_generators


def fit_private(
    model: nn.Module,
    data: TensorSet,
    recipe: Recipe,
    *,
    seed: int,
    observers: tuple[Observer, ...] = (),
    keeper: Keeper = NEVER,
) -> nn.Module:
    """Train ``model`` in place by DP-SGD and return it in eval mode.

    An epoch is ``steps_per_epoch`` steps; an observer's loss is the mean over the points drawn in that epoch. The draw,
    the noise and the augmentation depend on ``seed`` only. The engine works on a copy and leaves nothing on the model.
    ``keeper``: as in ``fit``.
    Raises ``BadInput`` for models and budgets that cannot be private and ``FloatingPointError`` when training diverges.
    """
    steps = steps_per_epoch(recipe, len(data))
    sigma = noise_of(recipe, len(data))
    assert recipe.max_grad_norm is not None  # the recipe has seen to it
    noise = Noise(sigma, recipe.max_grad_norm, len(data) / steps, torch.Generator(data.y.device))
    noise.generator.manual_seed(derive_seed(seed, Purpose.PRIVACY))
    with quiet(), torch.random.fork_rng(devices=devices_of(data)):
        engine = ENGINES[recipe.private_engine](model, data, recipe, noise)
        schedule = make_schedule(engine.inner, recipe.schedule, recipe.epochs)
        order = torch_generator(derive_seed(seed, Purpose.ORDER))
        shifts = torch_generator(derive_seed(seed, Purpose.AUGMENT))
        torch.manual_seed(derive_seed(seed, Purpose.DROPOUT))
        total = torch.zeros((), dtype=torch.float64, device=data.y.device)
        drawn = torch.zeros((), dtype=torch.int64)
        generators = {"augment": shifts, "privacy": noise.generator, **global_generators(devices_of(data))}
        sums = {"loss": total, "points": drawn}
        kept = Steps(keeper, engine.student, engine.inner, schedule, order, generators, sums)
        for epoch in kept.epochs(recipe.epochs):
            for rows in kept.batches(poisson_batches(len(data), steps, order)):
                total += engine.step(rows, shifts)
                drawn += len(rows)
            schedule.step()
            loss = float(total)
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"training diverged in epoch {epoch + 1} of {recipe.epochs}: the loss is {loss}; "
                    "lower the learning rate"
                )
            for observer in observers:
                observer(EpochReport(epoch, loss / max(1, int(drawn)), len(data)))
    model.load_state_dict(engine.weights())
    check_finite(model)
    return model.eval()


def poisson_batches(points: int, steps: int, order: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield the rows of each of the ``steps`` batches of an epoch: every point by a coin of its own, drawn in turn."""
    for _ in range(steps):
        yield torch.nonzero(torch.rand(points, generator=order) < 1 / steps).flatten()


def check_private(model: nn.Module, engine: str = "fast") -> None:
    """Refuse a model whose points influence each other's gradients, or whose layers ``engine`` does not know.

    The fast engine tries layers out on data, so there are models that it refuses only when training starts.
    """
    ENGINES[engine].check(model)

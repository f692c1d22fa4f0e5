"""Differentially private training: DP-SGD (Abadi et al., arXiv 1607.00133).

Each step draws every point by a coin of its own (Poisson sampling), bounds each point's gradient, adds Gaussian noise
to their sum and divides by the expected batch size. ``recipe.private_engine`` names the engine that does it, one of
``audits.training.engines``. Both draw the same points and the same noise, so their models differ by rounding (and by
dropout, where a batch is summed in other parts).

The privacy spent is counted by Opacus' RDP accountant for the subsampled Gaussian mechanism (Mironov et al., arXiv
1908.10530), the same for both engines: the smallest bound over the Rényi orders 1.1 to 10.9 in steps of 0.1, 12 to 63,
128, 256, 512 and 1024. The Rényi divergence at each order is exact for Poisson sampling; turning it into (ε, δ) is an
upper bound, under adding or removing one point.

The noise comes from torch's generator, so that equal seeds give equal weights. That is right for an audit; a model that
is handed out needs noise that nobody can draw again.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import nn

from audits.data.tensors import TensorSet, devices_of
from audits.errors import BadInput
from audits.gradients.model_copies import quiet
from audits.models.finite import check_finite
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.engines.base import ENGINES, Noise, opacus
from audits.training.loop import EpochReport, Observer, make_schedule
from audits.training.recipe import Recipe

MOST_NOISE = 1e6
ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64), 128, 256, 512, 1024)  # of the Rényi divergence


def fit_private(
    model: nn.Module, data: TensorSet, recipe: Recipe, *, seed: int, observers: tuple[Observer, ...] = ()
) -> nn.Module:
    """Train ``model`` in place by DP-SGD and return it in eval mode.

    An epoch is ``steps_per_epoch`` steps; an observer's loss is the mean over the points drawn in that epoch. The draw,
    the noise and the augmentation depend on ``seed`` only. The engine works on a copy and leaves nothing on the model.
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
        for epoch in range(recipe.epochs):
            total, drawn = 0.0, 0
            for _ in range(steps):
                rows = torch.nonzero(torch.rand(len(data), generator=order) < 1 / steps).flatten()
                total += engine.step(rows, shifts)
                drawn += len(rows)
            schedule.step()
            if not math.isfinite(total):
                raise FloatingPointError(
                    f"training diverged in epoch {epoch + 1} of {recipe.epochs}: the loss is {total}; "
                    "lower the learning rate"
                )
            for observer in observers:
                observer(EpochReport(epoch, total / max(1, drawn), len(data)))
    model.load_state_dict(engine.weights())
    check_finite(model)
    return model.eval()


def steps_per_epoch(recipe: Recipe, points: int) -> int:
    """Return the steps that draw every point once on average; each point is in a batch with probability 1/steps."""
    return math.ceil(points / recipe.batch_size)


def delta_of(recipe: Recipe, points: int) -> float:
    """Return δ of the guarantee: the recipe's, or a tenth of 1/``points``."""
    return 0.1 / points if recipe.delta is None else recipe.delta


def spent_epsilon(recipe: Recipe, points: int) -> float:
    """Return ε of the (ε, δ) guarantee that a model trained on ``points`` points has; infinite without any noise.

    δ is ``delta_of``. By Opacus' RDP accountant, for adding or removing one point.
    """
    if not recipe.private:
        return math.inf
    return epsilon_of(recipe, noise_of(recipe, points), points)


def epsilon_of(recipe: Recipe, sigma: float, points: int) -> float:
    """Return ε after all steps of ``recipe`` with the noise multiplier ``sigma``."""
    if recipe.epochs == 0:
        return 0.0
    if sigma == 0:
        return math.inf
    return counted(sigma, steps_per_epoch(recipe, points), recipe.epochs, delta_of(recipe, points))


@functools.cache
def counted(sigma: float, steps: int, epochs: int, delta: float) -> float:
    """Return ε at ``delta`` of ``epochs`` times ``steps`` noisy steps on batches of a share 1/``steps``."""
    accountant = opacus("accountants").RDPAccountant()
    accountant.history = [(sigma, 1 / steps, steps * epochs)]
    with quiet():
        return float(accountant.get_epsilon(delta, alphas=list(ORDERS)))


def noise_of(recipe: Recipe, points: int) -> float:
    """Return the noise multiplier: the recipe's, or the smallest (to 1 %) whose ε is at most ``target_epsilon``.

    BadInput when no noise reaches the target.
    """
    if recipe.noise_multiplier is not None or recipe.target_epsilon is None or recipe.epochs == 0:
        return recipe.noise_multiplier or 0.0
    low, high = 0.0, 1.0
    while epsilon_of(recipe, high, points) > recipe.target_epsilon:
        low, high = high, 2 * high
        if high > MOST_NOISE:
            raise BadInput(
                f"recipe.target_epsilon is {recipe.target_epsilon}, which no noise reaches on {points} points with "
                f"delta {delta_of(recipe, points):g}; raise it, or train for fewer epochs"
            )
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if epsilon_of(recipe, middle, points) > recipe.target_epsilon:
            low = middle
        else:
            high = middle
    return high


def check_private(model: nn.Module, engine: str = "fast") -> None:
    """Refuse a model whose points influence each other's gradients, or whose layers ``engine`` does not know.

    The fast engine tries layers out on data, so there are models that it refuses only when training starts.
    """
    ENGINES[engine].check(model)

"""Differentially private training: DP-SGD (Abadi et al., arXiv 1607.00133) with the parts of Opacus.

Each step draws every point by a coin of its own (Poisson sampling), bounds each point's gradient, adds Gaussian noise
to their sum and divides by the expected batch size. The privacy spent is counted by Opacus' RDP accountant for the
subsampled Gaussian mechanism (Mironov et al., arXiv 1908.10530): an upper bound, under adding or removing one point.

The noise comes from torch's generator, so that equal seeds give equal weights. That is right for an audit; a model that
is handed out needs noise that nobody can draw again.
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.seeds import derive_seed, torch_generator
from audits.training.loop import (
    EpochReport,
    Observer,
    augmented,
    check_finite,
    devices_of,
    make_optimizer,
    make_schedule,
)
from audits.training.recipe import Recipe

if TYPE_CHECKING:
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

POINTS_AT_ONCE = 64  # gradients of single points held in memory; a larger batch is summed in parts
MOST_NOISE = 1e6
ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64), 128, 256, 512, 1024)  # of the Rényi divergence


def fit_private(
    model: nn.Module, data: TensorSet, recipe: Recipe, *, seed: int, observers: tuple[Observer, ...] = ()
) -> nn.Module:
    """Train ``model`` in place by DP-SGD and return it in eval mode.

    An epoch is ``steps_per_epoch`` steps; an observer's loss is the mean over the points drawn in that epoch. The draw,
    the noise and the augmentation depend on ``seed`` only. Opacus works on a copy, so nothing of it stays on the model.
    Raises ``BadInput`` for models and budgets that cannot be private and ``FloatingPointError`` when training diverges.
    """
    steps = steps_per_epoch(recipe, len(data))
    sigma = noise_of(recipe, len(data))
    with quiet(), torch.random.fork_rng(devices=devices_of(data)):
        student = per_point(contiguous(model).train())
        inner = make_optimizer(student, recipe)
        optimizer = noisy(inner, recipe, sigma, len(data) / steps, derive_seed(seed, "privacy"), data.y.device)
        schedule = make_schedule(inner, recipe.schedule, recipe.epochs)
        order = torch_generator(derive_seed(seed, "order"))
        shifts = torch_generator(derive_seed(seed, "augment"))
        torch.manual_seed(derive_seed(seed, "dropout"))
        for epoch in range(recipe.epochs):
            total, drawn = 0.0, 0
            for _ in range(steps):
                rows = torch.nonzero(torch.rand(len(data), generator=order) < 1 / steps).flatten()
                total += step(student, optimizer, data, rows, recipe, shifts)
                drawn += len(rows)
            schedule.step()
            if not math.isfinite(total):
                raise FloatingPointError(
                    f"training diverged in epoch {epoch}: the loss is {total}; lower the learning rate"
                )
            for observer in observers:
                observer(EpochReport(epoch, total / max(1, drawn), len(data)))
    model.load_state_dict(student.to_standard_module().state_dict())
    check_finite(model)
    return model.eval()


def step(
    student: GradSampleModule,
    optimizer: DPOptimizer,
    data: TensorSet,
    rows: torch.Tensor,
    recipe: Recipe,
    shifts: torch.Generator,
) -> float:
    """Take one noisy step on ``rows`` and return their summed loss; without rows the step is noise alone."""
    optimizer.zero_grad(set_to_none=True)
    if len(rows) == 0:
        for parameter in optimizer.params:
            parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))
        optimizer.step()
        return 0.0
    parts, total = rows.split(POINTS_AT_ONCE), 0.0
    for number, part in enumerate(parts, start=1):
        x, y = data.batch(part.to(data.y.device))
        if recipe.augment_shift or recipe.flip:
            x = augmented(x, recipe.augment_shift, recipe.flip, shifts)
        loss = F.cross_entropy(student(x), y, label_smoothing=recipe.label_smoothing)
        loss.backward()
        optimizer.signal_skip_step(do_skip=number < len(parts))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        total += float(loss.detach()) * len(y)
    return total


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


def check_private(model: nn.Module) -> None:
    """Refuse a model whose points influence each other's gradients, or whose layers Opacus does not know."""
    per_point(copy.deepcopy(model))


def contiguous(model: nn.Module) -> nn.Module:
    """Return a copy of ``model`` whose weights lie row by row in memory.

    Opacus reads activations so: channels-last ones give wrong gradients of single points, silently. ``Module.to`` is
    not enough: a kernel of one input channel counts as both and would keep its strides.
    """
    found = copy.deepcopy(model)
    for weight in found.parameters():
        weight.data = weight.data.clone(memory_format=torch.contiguous_format)
    return found


def per_point(model: nn.Module) -> GradSampleModule:
    """Return ``model`` with hooks that leave each point's gradient in ``grad_sample``; BadInput when it cannot."""
    for name, layer in model.named_modules():
        if isinstance(layer, _BatchNorm):
            raise BadInput(
                f"recipe: private training needs each point's own gradient, but layer {name} is a "
                f"{type(layer).__name__}, which mixes the points of a batch; use model.settings.norm: group "
                "(resnet18, vgg16), batch_norm: false (mlp), or cnn"
            )
    try:
        return opacus("grad_sample").GradSampleModule(model, loss_reduction="mean")
    except NotImplementedError as error:
        reason = " ".join(str(error).split())[:120]
        raise BadInput(
            f"recipe: private training does not work with this model ({reason}); use resnet18 or vgg16 with "
            "model.settings.norm: group, mlp or cnn"
        ) from error


def noisy(
    inner: torch.optim.Optimizer, recipe: Recipe, sigma: float, expected: float, seed: int, device: torch.device
) -> DPOptimizer:
    """Return ``inner`` behind Opacus' optimiser: clip each point, sum, add noise, divide by the ``expected`` batch."""
    return opacus("optimizers").DPOptimizer(
        inner,
        noise_multiplier=sigma,
        max_grad_norm=recipe.max_grad_norm,
        expected_batch_size=expected,
        generator=torch.Generator(device).manual_seed(seed),
    )


def opacus(part: str) -> Any:
    """Return the module ``opacus.<part>``, imported when it is first needed."""
    import importlib

    try:
        with quiet():
            return importlib.import_module(f"opacus.{part}")
    except ImportError as error:
        raise BadInput(f"recipe: private training needs Opacus ({error}); pip install 'orch-audit[dp]'") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the advice that Opacus and torch's hooks give to their own users off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

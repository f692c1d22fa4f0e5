"""The Opacus engine of DP-SGD: its hooks leave each point's gradient, its optimiser bounds, sums and adds the noise.

Slower than ``fast``, which is checked against it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.model_copies import contiguous
from audits.training.engines.base import ENGINES, REMEDY, Engine, Noise, check_norms, opacus
from audits.training.loop import augmented, make_optimizer
from audits.training.recipe import Recipe

if TYPE_CHECKING:
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

POINTS_AT_ONCE = 64  # gradients of single points held in memory; a larger batch is summed in parts


@ENGINES.register("opacus")
class OpacusEngine(Engine):
    """Opacus' own hooks and optimiser: slower, the same up to rounding."""

    student: GradSampleModule

    def __init__(self, model: nn.Module, data: TensorSet, recipe: Recipe, noise: Noise) -> None:
        self.student = per_point(contiguous(model).train())
        self.inner = make_optimizer(self.student, recipe)
        self.optimizer = noisy(self.inner, noise)
        self.data, self.recipe = data, recipe

    @classmethod
    def check(cls, model: nn.Module) -> None:
        """Refuse a model that Opacus cannot take gradients of single points of."""
        per_point(copy.deepcopy(model))

    def step(self, rows: torch.Tensor, shifts: torch.Generator) -> torch.Tensor:
        """Take one noisy step on ``rows``, in parts of a bounded size, and return their summed loss."""
        return step(self.student, self.optimizer, self.data, rows, self.recipe, shifts)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the state dict of the trained model."""
        return dict(self.student.to_standard_module().state_dict())


def step(
    student: GradSampleModule,
    optimizer: DPOptimizer,
    data: TensorSet,
    rows: torch.Tensor,
    recipe: Recipe,
    shifts: torch.Generator,
) -> torch.Tensor:
    """Take one noisy step on ``rows`` and return their summed loss; without rows the step is noise alone."""
    total = torch.zeros((), dtype=torch.float64, device=data.y.device)
    optimizer.zero_grad(set_to_none=True)
    if len(rows) == 0:
        for parameter in optimizer.params:
            parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))
        optimizer.step()
        return total
    parts = rows.split(POINTS_AT_ONCE)
    for number, (x, y) in enumerate(data.batches(parts), start=1):
        if recipe.augment_shift or recipe.flip:
            x = augmented(x, recipe.augment_shift, recipe.flip, shifts)
        loss = F.cross_entropy(student(x), y, label_smoothing=recipe.label_smoothing)
        loss.backward()
        optimizer.signal_skip_step(do_skip=number < len(parts))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        total += loss.detach().double() * len(y)
    return total


def per_point(model: nn.Module) -> GradSampleModule:
    """Return ``model`` with hooks that leave each point's gradient in ``grad_sample``; BadInput when it cannot."""
    check_norms(model)
    try:
        return opacus("grad_sample").GradSampleModule(model, loss_reduction="mean")
    except NotImplementedError as error:
        reason = " ".join(str(error).split())[:120]
        raise BadInput(
            f"recipe: private training by Opacus does not work with this model ({reason}); {REMEDY}"
        ) from error


def noisy(inner: torch.optim.Optimizer, noise: Noise) -> DPOptimizer:
    """Return ``inner`` behind Opacus' optimiser: clip each point, sum, add noise, divide by the expected batch."""
    return opacus("optimizers").DPOptimizer(
        inner,
        noise_multiplier=noise.sigma,
        max_grad_norm=noise.bound,
        expected_batch_size=noise.expected,
        generator=noise.generator,
    )

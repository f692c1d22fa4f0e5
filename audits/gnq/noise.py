"""Noise on the gradients of single points: a finer defence than their removal, and no differential privacy.

Nothing is clipped, so nothing is bounded. Gaussian noise on the gradients of k points of a batch of B changes its mean
gradient as one draw of k times the variance does, over B², so no point's own gradient is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.fit import fit
from audits.training.keeper import NEVER, Beside, Keeper, Snapshot
from audits.training.loop import Observer
from audits.training.recipe import Recipe
from audits.training.team import ALONE, Team
from audits.uniqueness.accumulate import Trace
from audits.uniqueness.checkpoints import Watched


def noise_scale(trace: Trace, strength: float, parameters: int) -> float:
    """Return the standard deviation of the noise on each of ``parameters`` numbers of a point's gradient.

    Its expected norm is about ``strength`` times the root mean square of ‖g‖ over all points along training.
    """
    mean = float((trace.weights @ trace.squared_norm).mean() / trace.weights.sum())
    return strength * float(np.sqrt(mean / parameters))


def fit_noised(
    model: nn.Module,
    data: TensorSet,
    recipe: Recipe,
    *,
    seed: int,
    marked: NDArray[np.bool_],
    scale: float,
    observers: tuple[Observer, ...] = (),
    keeper: Keeper = NEVER,
    team: Team = ALONE,
) -> nn.Module:
    """Train ``model`` in place as ``fit`` does, with noise of standard deviation ``scale`` on the ``marked`` points.

    ``marked`` (n,) bool: rows of ``data``. Without marked points or with ``scale`` 0 the bits are those of ``fit``.
    The noise is drawn on the CPU, by every worker of a ``team`` the same: it stays what it is in the mean over them.
    Raises BadInput for private recipes, for a mask that does not fit and for a scale that is negative or not finite;
    otherwise as ``fit`` does.
    """
    if recipe.private:
        raise BadInput("recipe is private, which adds noise of its own; give an ordinary recipe")
    if marked.shape != (len(data),) or marked.dtype != bool:
        raise BadInput(f"marked is {marked.dtype} {marked.shape}; allowed: bool ({len(data)},), one for each point")
    if not 0 <= scale < float("inf"):
        raise BadInput(f"scale is {scale}; allowed: 0 or more, finite")
    noise = BatchNoise(torch.from_numpy(marked), scale, torch_generator(derive_seed(seed, Purpose.GRADIENT_NOISE)))
    watched = Watched(data.x, data.y, noise.before_step, encoded=data.encoded)
    keeper = Beside(keeper, "noise", noise)
    with noise.on(model):
        return fit(model, watched, recipe, seed=seed, observers=observers, keeper=keeper, team=team)


class BatchNoise:
    """Adds to each gradient of a step what the noise of the marked points of its batch comes to."""

    def __init__(self, marked: torch.Tensor, scale: float, generator: torch.Generator) -> None:
        self.marked, self.scale, self.generator = marked, scale, generator
        self.deviation = 0.0

    def before_step(self, rows: torch.Tensor) -> None:
        """Take in which points the step is made of."""
        self.deviation = self.scale * float(self.marked[rows].sum()) ** 0.5 / len(rows)

    def snapshot(self) -> Snapshot:
        """Return where the generator of the noise stands; the rest is set before each step."""
        return Snapshot({"generator": self.generator.get_state()})

    def resume(self, snapshot: Snapshot) -> None:
        """Go back to ``snapshot``."""
        self.generator.set_state(snapshot.tensors["generator"])

    @contextmanager
    def on(self, model: nn.Module) -> Iterator[None]:
        """Add noise wherever a gradient of ``model`` has been accumulated, until the end of the context."""
        hooks = [
            parameter.register_post_accumulate_grad_hook(self.add)
            for parameter in model.parameters()
            if parameter.requires_grad
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def add(self, parameter: torch.Tensor) -> None:
        """Add noise to the gradient of one parameter."""
        if self.deviation and parameter.grad is not None:
            drawn = torch.randn(parameter.shape, generator=self.generator) * self.deviation
            parameter.grad += drawn.to(parameter.grad)

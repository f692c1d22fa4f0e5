"""Several small models as one: their weights side by side, one launch on a GPU where there was one a model.

A small model leaves a GPU waiting for launches: a pass of one mlp takes about as long there as a pass of sixteen at
once. On a CPU the same arithmetic is slower at once than one after the other, so that nothing is stacked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

MOST_WEIGHTS = 2**22
"""Models with more weights than this fill a GPU one after the other."""


class Stacked:
    """m models of one architecture in eval mode; their weights are copied."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.form, self.count = models[0], len(models)
        parameters, buffers = stack_module_state(list(models))
        self.state = {name: value.detach() for name, value in {**parameters, **buffers}.items()}

    def _one(self, state: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = functional_call(self.form, state, (x,))
        return found

    def each(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits (m, N, classes) of each model for inputs (m, N, ...) of its own."""
        return self._mapped(0)(self.state, x)

    def same(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits (m, N, classes) of each model for the inputs (N, ...)."""
        return self._mapped(None)(self.state, x)

    def _mapped(self, axis: int | None) -> Callable[..., torch.Tensor]:
        return vmap(self._one, in_dims=(0, axis))


def stacked(models: Sequence[nn.Module], sample: torch.Tensor) -> Stacked | None:
    """Return ``models`` as one, or None where one after the other is better: on a CPU, and where they are large.

    None as well for a single model, for models of several forms or in train mode, and where ``vmap`` has no rule for
    what they do with ``sample`` (1, ...), inputs like those that they will be asked about.
    """
    if sample.device.type != "cuda" or len(models) < 2 or not alike(models):
        return None
    if sum(weight.numel() for weight in models[0].parameters()) > MOST_WEIGHTS:
        return None
    found = Stacked(models)
    try:
        with torch.no_grad():
            found.same(sample)
    except (RuntimeError, NotImplementedError) as error:  # no batching rule, or control flow that reads values
        if isinstance(error, torch.OutOfMemoryError):
            raise
        return None
    return found


def alike(models: Sequence[nn.Module]) -> bool:
    """Say whether models differ in nothing but their weights, and none of them trains."""
    first = form(models[0])
    training = any(module.training for model in models for module in model.modules())
    return not training and all(form(model) == first for model in models[1:])


def form(model: nn.Module) -> tuple[object, ...]:
    """Return what models that can be stacked have in common: kinds and settings of modules, shapes and dtypes."""
    kinds = tuple(type(module) for module in model.modules())
    return kinds, repr(model), *((name, value.shape, value.dtype) for name, value in model.state_dict().items())

"""Several small models as one: their weights side by side, one launch on a GPU where there was one a model.

A small model leaves a GPU waiting for launches: a pass of one mlp takes about as long there as a pass of sixteen at
once. On a CPU the same arithmetic is slower at once than one after the other, so that nothing is stacked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from audits.memory import give_back, out_of_memory

MOST_WEIGHTS = 2**22
"""Models with more weights than this fill a GPU one after the other."""


class Stacked:
    """m models of one architecture in eval mode; their weights are copied.

    ``at_once`` of them go through a pass together; fewer of them take less memory where no gradient is asked for.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.form, self.count = models[0], len(models)
        self.at_once = self.count
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
        return vmap(self._one, in_dims=(0, axis), chunk_size=self.at_once if self.at_once < self.count else None)

    def fewer(self) -> bool:
        """Let half as many models go through a pass together; False where it is one already."""
        if self.at_once == 1:
            return False
        self.at_once = -(-self.at_once // 2)
        return True


def stacked(models: Sequence[nn.Module], sample: torch.Tensor) -> Stacked | None:
    """Return ``models`` as one, or None where one after the other is better: on a CPU, and where they are large.

    None as well for a single model, for models of several forms or in train mode, where ``vmap`` has no rule for what
    they do with ``sample`` (1, ...), inputs like those that they will be asked about, and where memory does not suffice
    for two of them.
    """
    if sample.device.type != "cuda" or len(models) < 2 or not alike(models):
        return None
    if sum(weight.numel() for weight in models[0].parameters()) > MOST_WEIGHTS:
        return None
    try:
        found = Stacked(models)
    except Exception as error:
        if not out_of_memory(error):
            raise
        give_back()
        return None
    return found if answers(found, sample) and found.at_once > 1 else None


def answers(models: Stacked, sample: torch.Tensor) -> bool:
    """Say whether ``models`` answer about ``sample``, as many of them together as memory suffices for."""
    while True:
        try:
            with torch.no_grad():
                models.same(sample)
        except (RuntimeError, NotImplementedError, MemoryError) as error:  # no batching rule, or values are read
            if not out_of_memory(error) or not models.fewer():
                return False
        else:
            return True
        give_back()


def alike(models: Sequence[nn.Module]) -> bool:
    """Say whether models differ in nothing but their weights, and none of them trains."""
    first = form(models[0])
    training = any(module.training for model in models for module in model.modules())
    return not training and all(form(model) == first for model in models[1:])


def form(model: nn.Module) -> tuple[object, ...]:
    """Return what models that can be stacked have in common: kinds and settings of modules, shapes and dtypes."""
    kinds = tuple(type(module) for module in model.modules())
    return kinds, repr(model), *((name, value.shape, value.dtype) for name, value in model.state_dict().items())

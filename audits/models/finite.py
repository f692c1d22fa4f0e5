"""The check that a model has not diverged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def check_finite(model: nn.Module) -> None:
    """Raise ``FloatingPointError`` when a weight or a statistic of ``model`` is not finite."""
    import torch

    state = model.state_dict()
    finite = [torch.isfinite(value).all() for value in state.values()]
    if finite and not bool(torch.stack(finite).all()):  # a GPU is waited for once, not once a weight
        name = next(name for name, fine in zip(state, finite, strict=True) if not bool(fine))
        raise FloatingPointError(f"training diverged: {name} is not finite; lower the learning rate")

"""The check that a model has not diverged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def check_finite(model: nn.Module) -> None:
    """Raise ``FloatingPointError`` when a weight or a statistic of ``model`` is not finite."""
    import torch

    for name, value in model.state_dict().items():
        if not bool(torch.isfinite(value).all()):
            raise FloatingPointError(f"training diverged: {name} is not finite; lower the learning rate")

"""Linear layers on vectors (n, inputs) and on sequences (n, ..., inputs)."""

from __future__ import annotations

import torch
from torch import nn

from audits.gradients.layers.base import LAYERS, Call, OuterRule, key_of


class LinearRule(OuterRule):
    """Every position of the middle axes is one outer product."""

    def factors(self, module: nn.Module, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a and b of one call; one group."""
        n = len(call.input)
        return (
            call.input.reshape(n, 1, -1, call.input.shape[-1]),
            call.grad.reshape(n, 1, -1, call.grad.shape[-1]),
        )


LAYERS.register(key_of(nn.Linear))(LinearRule())

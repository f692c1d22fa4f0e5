"""Linear layers on vectors (n, inputs) and on sequences (n, ..., inputs)."""

from __future__ import annotations

import torch
from torch import nn

from audits.disclosure.layers.base import Call, OuterRule, layer


@layer(nn.Linear)
class LinearRule(OuterRule):
    """Every position of the middle axes is one outer product."""

    def factors(self, module: nn.Module, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """See ``OuterRule.factors``; one group."""
        n = len(call.input)
        return (
            call.input.reshape(n, 1, -1, call.input.shape[-1]),
            call.grad.reshape(n, 1, -1, call.grad.shape[-1]),
        )

"""GroupNorm of (n, channels, ...)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from audits.disclosure.layers.base import Call, LayerRule, layer


@layer(nn.GroupNorm)
class GroupNormRule(LayerRule):
    """Scale and shift are few: their gradients are made."""

    def rows(self, module: nn.Module, call: Call, name: str) -> torch.Tensor:
        """See ``LayerRule.rows``."""
        assert isinstance(module, nn.GroupNorm)
        grad = call.grad
        if name == "weight":
            grad = grad * F.group_norm(call.input, module.num_groups, eps=module.eps)
        return grad.reshape(*grad.shape[:2], -1).sum(2)

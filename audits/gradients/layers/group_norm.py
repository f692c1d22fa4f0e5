"""GroupNorm of (n, channels, ...)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from audits.gradients.layers.base import LAYERS, Call, LayerRule, key_of


class GroupNormRule(LayerRule):
    """Scale and shift are few: their gradients are made."""

    def rows(self, module: nn.Module, call: Call, name: str) -> torch.Tensor:
        assert isinstance(module, nn.GroupNorm)
        grad = call.grad
        if name == "weight":
            grad = grad * F.group_norm(call.input, module.num_groups, eps=module.eps)
        return grad.reshape(*grad.shape[:2], -1).sum(2)


LAYERS.register(key_of(nn.GroupNorm))(GroupNormRule())

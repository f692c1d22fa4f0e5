"""LayerNorm over the last axes of (n, ..., *normalised)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from audits.gradients.layers.base import LAYERS, Call, LayerRule, key_of


class LayerNormRule(LayerRule):
    """Scale and shift are few: their gradients are made."""

    def reads(self, module: nn.Module, call: Call, points: int) -> bool:
        """A call without an axis for the points has those axes only that are normalised."""
        assert isinstance(module, nn.LayerNorm)
        return call.input.ndim > len(module.normalized_shape) and super().reads(module, call, points)

    def rows(self, module: nn.Module, call: Call, name: str) -> torch.Tensor:
        assert isinstance(module, nn.LayerNorm)
        grad = call.grad
        if name == "weight":
            grad = grad * F.layer_norm(call.input, module.normalized_shape, eps=module.eps)
        numbers = module.get_parameter(name).numel()
        return grad.reshape(len(grad), -1, numbers).sum(1)


LAYERS.register(key_of(nn.LayerNorm))(LayerNormRule())

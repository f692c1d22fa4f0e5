"""BatchNorm in eval mode, where running statistics make it a fixed scale and shift of (n, channels, ...)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from audits.gradients.layers.base import LAYERS, Call, LayerRule, key_of


class BatchNormRule(LayerRule):
    """In train mode no point has a gradient of its own: ``validate`` refuses that."""

    def rows(self, module: nn.Module, call: Call, name: str) -> torch.Tensor:
        assert isinstance(module, _BatchNorm)
        grad = call.grad
        if name == "weight":
            grad = grad * F.batch_norm(call.input, module.running_mean, module.running_var, eps=module.eps)
        return grad.reshape(*grad.shape[:2], -1).sum(2)


LAYERS.register(key_of(nn.BatchNorm1d))(BatchNormRule())
LAYERS.register(key_of(nn.BatchNorm2d))(BatchNormRule())
LAYERS.register(key_of(nn.BatchNorm3d))(BatchNormRule())

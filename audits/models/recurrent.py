"""Recurrent layers whose gradient is wanted in eval mode, which cuDNN refuses: torch's own code computes it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def differentiable(model: nn.Module) -> nn.Module:
    """Let the recurrent layers of ``model`` do without cuDNN where a gradient is wanted in eval mode; return it."""
    for module in model.modules():
        if isinstance(module, nn.RNNBase) and Aside.before not in map(plain, module._forward_pre_hooks.values()):
            aside = Aside()
            module.register_forward_pre_hook(aside.before)
            module.register_forward_hook(aside.behind, always_call=True)
    return model


def plain(hook: Any) -> Any:
    """Return the function of a method."""
    return getattr(hook, "__func__", hook)


class Aside:
    """Puts cuDNN aside for one call of a module, and back."""

    def __init__(self) -> None:
        self.enabled = torch.backends.cudnn.enabled

    def before(self, module: nn.Module, inputs: Any) -> None:
        self.enabled = torch.backends.cudnn.enabled
        if not module.training and torch.is_grad_enabled():
            torch.backends.cudnn.enabled = False

    def behind(self, module: nn.Module, inputs: Any, answer: Any) -> None:
        torch.backends.cudnn.enabled = self.enabled

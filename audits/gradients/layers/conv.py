"""Convolutions in one, two and three dimensions with any stride, padding, dilation and groups."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from audits.gradients.layers.base import LAYERS, Call, OuterRule, key_of


class ConvolutionRule(OuterRule):
    """Every position of the output is one outer product with the patch of the input that it was computed from."""

    def factors(self, module: nn.Module, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a and b of one call; inputs are (channels of the group, kernel) flat, as in the weight."""
        assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        n = len(call.input)
        a = patches(module, call.input).reshape(n, module.groups, -1, call.grad[0, 0].numel())
        b = call.grad.reshape(n, module.groups, -1, call.grad[0, 0].numel())
        return a.transpose(2, 3), b.transpose(2, 3)

    def reads(self, module: nn.Module, call: Call, points: int) -> bool:
        """A call without an axis for the points has as many axes less."""
        assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        return call.input.ndim == 2 + len(module.kernel_size) and super().reads(module, call, points)

    def units(self, module: nn.Module) -> int:
        assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        return module.out_channels // module.groups


def patches(module: nn.Conv1d | nn.Conv2d | nn.Conv3d, x: torch.Tensor) -> torch.Tensor:
    """Return what each position of the output sees: (n, channels, *kernel, *output size)."""
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    # Torch's own field: it knows "same", which may pad one side more than the other.
    x = F.pad(x, module._reversed_padding_repeated_twice, mode=mode)
    dimensions = len(module.kernel_size)
    for axis, (size, stride, gap) in enumerate(
        zip(module.kernel_size, module.stride, module.dilation, strict=True), start=2
    ):
        x = x.unfold(axis, gap * (size - 1) + 1, stride)[..., ::gap]
    kernel = range(2 + dimensions, 2 + 2 * dimensions)
    return x.permute(0, 1, *kernel, *range(2, 2 + dimensions))


LAYERS.register(key_of(nn.Conv1d))(ConvolutionRule())
LAYERS.register(key_of(nn.Conv2d))(ConvolutionRule())
LAYERS.register(key_of(nn.Conv3d))(ConvolutionRule())

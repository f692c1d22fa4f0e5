"""BatchNorm over the shares of several workers: the statistics of the whole batch, for as long as a forward pass lasts.

torch's SyncBatchNorm computes on GPUs only and takes the place of the layers; here the layers stay what they are, and
the same lines run on every device. Mean and variance are summed one after the other, as exactly as by one worker.
Costs a layer: two all-reduces of its channels forward, two backward, and about two more activations of its size held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def synced(model: nn.Module, group: dist.ProcessGroup | None) -> Iterator[None]:
    """Let the BatchNorm layers of ``model`` that are in train mode take their statistics over a group."""
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm) and module.training]
    for layer in layers:
        layer.forward = partial(normalised, layer, group)  # type: ignore[method-assign]  # until the end of the pass
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def normalised(layer: _BatchNorm, group: dist.ProcessGroup | None, x: torch.Tensor) -> torch.Tensor:
    """Return what ``layer`` makes of this worker's share ``x`` (n, channels, ...) of a batch; it counts the batch."""
    channels, axes = (1, -1, *[1] * (x.ndim - 2)), [0, *range(2, x.ndim)]
    own = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    count = torch.full((1,), x.numel() // x.shape[1], dtype=own.dtype, device=x.device)
    *sums, points = Sum.apply(torch.cat([own.sum(axes), count]), group).split([x.shape[1], 1])
    mean = sums[0] / points
    centred = own - mean.view(channels)
    variance = Sum.apply(centred.square().sum(axes), group) / points
    if layer.running_mean is not None and layer.running_var is not None:
        follow(layer, mean.detach(), variance.detach() * (points / (points - 1)).detach())
    scaled = centred * torch.rsqrt(variance + layer.eps).view(channels)
    if layer.affine:
        scaled = scaled * layer.weight.view(channels) + layer.bias.view(channels)
    found: torch.Tensor = scaled.to(x.dtype)
    return found


def follow(layer: _BatchNorm, mean: torch.Tensor, variance: torch.Tensor) -> None:
    """Let the running statistics of ``layer`` follow those of a batch, as its own forward pass does."""
    assert layer.running_mean is not None and layer.running_var is not None, "a layer that has none follows nothing"
    factor = 0.0 if layer.momentum is None else layer.momentum
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
        if layer.momentum is None:
            factor = 1.0 / float(layer.num_batches_tracked)
    layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), factor)
    layer.running_var.lerp_(variance.to(layer.running_var.dtype), factor)


class Sum(torch.autograd.Function):
    """The sum over all workers, forward and backward."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
        ctx.group = group
        total = own.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        total = gradients[0].clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None

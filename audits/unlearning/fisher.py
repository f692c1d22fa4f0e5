"""The diagonal of the empirical Fisher information, from the gradients of single points."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from audits.data.tensors import TensorSet

ENTRIES = {"cpu": 2**22, "cuda": 2**29}
"""Gradient entries held at once where that is at least eight points: larger tables leave a CPU's caches, on a GPU they
take 2 GiB."""


def diagonal_fisher(model: nn.Module, data: TensorSet) -> list[torch.Tensor]:
    """Return, for each parameter, the mean over ``data`` of (∂CE of one point)², float64, of the parameter's shape.

    The model is read in eval mode, where the points of a batch do not meet (BatchNorm, Dropout), and is left in the
    mode it was in. Squaring the gradient of a batch's mean, as public code does, gives another matrix.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def loss(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        output = functional_call(model, (weights, buffers), (x.unsqueeze(0),))
        return F.cross_entropy(output, y.unsqueeze(0))

    per_point = vmap(grad(loss), in_dims=(None, 0, 0))
    chunk = max(8, min(256, ENTRIES[data.y.device.type] // sum(weight.numel() for weight in weights.values())))
    total = {name: torch.zeros_like(weight, dtype=torch.float64) for name, weight in weights.items()}
    for rows in torch.arange(len(data), device=data.y.device).split(chunk):
        for name, part in per_point(weights, *data.batch(rows)).items():
            total[name] += part.double().square().sum(0)
    for module, training in modes:
        module.training = training
    return [whole / len(data) for whole in total.values()]

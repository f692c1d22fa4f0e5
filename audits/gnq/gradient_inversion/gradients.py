"""Gradients of the loss with respect to all weights, of single points and of batches, that can be differentiated."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.func import grad, vmap

from audits.gradients.capture import answer, exact
from audits.memory import by_chunks

Gradients = Mapping[str, torch.Tensor]
"""Parameter → its gradient, with one row for each problem in front: (P, …)."""


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters of ``model`` that train, by name, detached."""
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


def loss_gradient(
    model: nn.Module, weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the gradient of the mean cross-entropy of points ``x`` (B, …), ``y`` (B,) int64; differentiable by x."""

    def loss(given: dict[str, torch.Tensor]) -> torch.Tensor:
        return -answer(model, x, given).log_softmax(1).gather(1, y[:, None]).mean()

    found: dict[str, torch.Tensor] = grad(loss)(weights)
    return found


def point_gradients(model: nn.Module, x: torch.Tensor, y: torch.Tensor, chunk: int = 32) -> dict[str, torch.Tensor]:
    """Return each point's own gradient, parameter → (n, …), ``chunk`` points at a time.

    ``model`` as it stands, in eval mode (``made_auditable``); ``x`` (n, …) in its dtype, ``y`` (n,) int64.
    """
    weights = weights_of(model)
    each = vmap(lambda point, label: loss_gradient(model, weights, point[None], label[None]))
    with exact(x.device):
        parts = by_chunks(lambda rows: each(x[rows], y[rows]), len(x), chunk)
    return {name: torch.cat([part[name].detach() for part in parts]) for name in weights}


def mean_of(gradients: Gradients, batches: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the mean gradient of each batch, parameter → (P, …); ``batches`` (P, B) int64: rows of ``gradients``."""
    return {name: each[batches].mean(1) for name, each in gradients.items()}


def noise_like(gradients: Gradients, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Return gaussian noise of the norm of each row's whole gradient, shaped as ``gradients``: it tells of no point."""
    drawn = {
        name: torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each)
        for name, each in gradients.items()
    }
    scale = (squared_norm(gradients) / squared_norm(drawn)).sqrt()
    return {name: each * scale.reshape(-1, *[1] * (each.ndim - 1)) for name, each in drawn.items()}


def squared_norm(gradients: Gradients) -> torch.Tensor:
    """Return ‖g‖² of each row, (P,), over all parameters."""
    return torch.stack([each.flatten(1).square().sum(1) for each in gradients.values()]).sum(0)

"""The gradient of a loss at the logits, computed where nothing cancels."""

from __future__ import annotations

from collections.abc import Callable

import torch

from audits.errors import BadInput, did_you_mean

# Logits (n, classes) and labels (n,) to the gradient of each point's loss at its logits, (n, classes) float64.
Residual = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# The same arguments to the loss of each point, (n,).
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def residual_of(loss: str | Loss) -> Residual:
    """Return the gradient at the logits of ``loss``: "cross_entropy", or a function of logits and labels.

    A function gets float64 logits (n, classes) and returns n losses, each of its own point only.
    """
    if callable(loss):
        return lambda logits, y: derivative(loss, logits, y)
    if loss != "cross_entropy":
        raise BadInput(
            f"loss is {loss!r}{did_you_mean(loss, ['cross_entropy'])}; allowed: 'cross_entropy', or a function "
            "(logits, y) -> one loss a point"
        )
    return cross_entropy


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return softmax − one-hot, (n, classes) float64.

    p_y − 1 is written as −Σ p_k over k ≠ y: on a well-fitted point the difference would lose its digits.
    """
    found = logits.double().softmax(1).scatter(1, y[:, None], 0.0)
    return found.scatter(1, y[:, None], -found.sum(1, keepdim=True))


def derivative(loss: Loss, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return ∂loss_i/∂logits_i of any loss, (n, classes) float64."""
    leaf = logits.detach().double().requires_grad_(True)
    with torch.enable_grad():
        losses = loss(leaf, y)
        if losses.shape != y.shape[:1]:
            raise BadInput(
                f"loss returned shape {tuple(losses.shape)} for {len(y)} points; return one loss a point, no mean"
            )
        return torch.autograd.grad(losses.sum(), leaf)[0]

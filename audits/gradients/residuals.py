"""The gradient of a loss at the logits, computed where nothing cancels."""

from __future__ import annotations

from collections.abc import Callable

import torch

from audits.errors import BadInput, did_you_mean

# Logits (n, classes) and labels (n,) to the gradient of each point's loss at its logits, (n, classes) float64.
Residual = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# The same arguments to the loss of each point, (n,).
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


SEPARATE = 1e-6
"""What the gradient of a point's loss may change by with the other points, of the largest number in a pass."""


def residual_of(loss: str | Loss) -> Residual:
    """Return the gradient at the logits of ``loss``: "cross_entropy", or a function of logits and labels.

    A function gets float64 logits (n, classes) and returns n losses, each of its own point only: see ``derivative``.
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
    """Return ∂loss_i/∂logits_i of any loss, (n, classes) float64.

    Raises BadInput for a loss of another shape, one that autograd does not follow, and one that mixes points: where the
    losses weighted point by point have another gradient than the gradients weighted so, or where the first or the last
    point has another one alone.
    """
    leaf, losses = leaf_and_losses(loss, logits, y)
    found = torch.autograd.grad(losses.sum(), leaf, retain_graph=True)[0]
    weight = 2.0 ** (torch.arange(len(y), device=leaf.device) % 4)
    weighted = torch.autograd.grad(losses, leaf, weight.to(losses.dtype))[0] / weight[:, None]
    alone = found.clone()
    for point in {0, len(y) - 1}:
        one = slice(point, point + 1 or None)
        try:
            own, loss_alone = leaf_and_losses(loss, logits[one], y[one])
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            if isinstance(error, BadInput):
                raise
            reason = " ".join(str(error).split())[:120]
            raise BadInput(
                f"loss: it cannot be asked about one point alone ({reason}); return one loss a point for any number of "
                "points (reshape(-1) in place of squeeze())"
            ) from error
        alone[one] = torch.autograd.grad(loss_alone.sum(), own)[0]
    allowed = SEPARATE * found.abs().max()
    separate = ((weighted - found).abs() <= allowed) & ((alone - found).abs() <= allowed)
    if not bool(separate.all()) and bool(torch.isfinite(found).all()):
        raise BadInput(
            "loss mixes the points of a batch, or draws at random: a point's loss may depend on its own logits and "
            "label alone; leave out means, shares and len(y), and weigh points by numbers fixed beforehand"
        )
    return found


def leaf_and_losses(loss: Loss, logits: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits as a leaf of autograd, float64, and the losses (n,) of them."""
    leaf = logits.detach().double().requires_grad_(True)
    with torch.enable_grad():
        losses = loss(leaf, y)
    if losses.shape != y.shape[:1]:
        raise BadInput(
            f"loss returned shape {tuple(losses.shape)} for {len(y)} point{'s' if len(y) > 1 else ''}; return one "
            "loss a point, no mean"
        )
    if not losses.requires_grad:
        raise BadInput(
            "loss does not lead back to the logits, so that all gradients would be 0; compute it from them, without "
            "detach, torch.no_grad or argmax"
        )
    return leaf, losses

"""Apollo's search with all shadows at once: two stacked models, the unlearned and the original ones, and masks."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Asked, Stacks


def gradient_at_once(
    stacks: Stacks,
    shape: tuple[int, ...],
    asked: Asked,
    moved: torch.Tensor,
    y: torch.Tensor,
    settings: SearchSettings,
    offline: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what ``loss_gradient`` returns: all shadows are asked about all candidates, and masked."""
    unlearned, original = stacks
    sign, ways = signs(moved), moved.shape[1]
    share_in, share_out = (weights(side, moved.dtype) for side in (asked.inside, asked.outside))
    with torch.enable_grad():
        points = moved.detach().requires_grad_(True)
        output = original.same(points.reshape(-1, *shape))
        entropy = entropies(output, y, ways)
        loss = (-sign * settings.beta * share_out * entropy).sum()
        seen = asked.outside[..., None] * (-entropy.detach()).exp()
        if offline:
            margin = boundary_margin(output.flatten(0, 1)).reshape(entropy.shape)
            loss = loss + (settings.alpha * share_out * margin).sum()
        else:
            assert unlearned is not None, "online searches have unlearned shadows"
            entropy = entropies(unlearned.same(points.reshape(-1, *shape)), y, ways)
            loss = loss + (sign * settings.alpha * share_in * entropy).sum()
            seen = torch.where(asked.inside[..., None], (-entropy.detach()).exp(), seen)
        (gradient,) = torch.autograd.grad(loss, points)
    return gradient, seen


def confidences_at_once(
    stacks: Stacks, shape: tuple[int, ...], asked: Asked, moved: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    """Return each shadow's probability (m, K, Q) of the true label; 0 where it is asked nothing."""
    (unlearned, original), ways = stacks, moved.shape[1]
    points = moved.reshape(-1, *shape)
    seen = asked.outside[..., None] * (-entropies(original.same(points), y, ways)).exp()
    if unlearned is None:
        return seen
    return torch.where(asked.inside[..., None], (-entropies(unlearned.same(points), y, ways)).exp(), seen)


def signs(moved: torch.Tensor) -> torch.Tensor:
    """Return 1 for UNDER and −1 for OVER, of ``moved`` (K, Q, D) with Q = 2, or 1 alone."""
    found = moved.new_ones(2)
    found[1].neg_()
    return found[: moved.shape[1]]


def weights(side: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return (m, K, 1): each shadow's share in the mean over those of ``side`` (m, K); 0 where none is."""
    found = side.to(dtype)
    return (found / found.sum(0).clamp_min(1))[..., None]


def entropies(output: torch.Tensor, y: torch.Tensor, ways: int) -> torch.Tensor:
    """Return the cross entropies (m, K, ways) of logits (m, K·ways, classes) to the true labels ``y`` (K,)."""
    truth = y[:, None].expand(-1, ways).reshape(-1).expand(len(output), -1)
    found: torch.Tensor = F.cross_entropy(output.flatten(0, 1), truth.reshape(-1), reduction="none")
    return found.reshape(len(output), -1, ways)


def boundary_margin(output: torch.Tensor) -> torch.Tensor:
    """Return the distance to the decision boundary in logits, top1 − top2, of logits (N, classes)."""
    top = output.topk(2, dim=1).values
    return top[:, 0] - top[:, 1]

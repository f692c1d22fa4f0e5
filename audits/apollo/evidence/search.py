"""Apollo's search for inputs near a candidate at which unlearned and never-trained models disagree.

Source: Apollo (arXiv 2506.09923), sections 4 and 5. The search reads the attacker's shadows only, never the target,
so one trace serves every target. Exact batched form: loop over the shadows, fold their BatchNorms, push all candidates
and both directions through each, and differentiate with respect to the inputs only.
``tests/audits/apollo/evidence/test_search.py`` holds the same search one point at a time and compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Asked, Shadows
from audits.apollo.evidence.stacked_search import boundary_margin, confidences_at_once, gradient_at_once, signs
from audits.errors import BadInput
from audits.memory import by_chunks

DIRECTIONS = ("under", "over")
REPROJECTIONS = 3


@dataclass(frozen=True)
class Trace:
    """The walk of a search. ``inputs``: (K, 2, T, D) x' (flattened) per direction and step; ``radius``: (K, 2, T) the
    L2 distance really travelled; ``confidence``: (m, K, 2, T) each shadow's probability of the true label at x'."""

    inputs: torch.Tensor
    radius: torch.Tensor
    confidence: torch.Tensor


def search(
    shadows: Shadows,
    x: torch.Tensor,
    y: torch.Tensor,
    start: torch.Tensor,
    settings: SearchSettings,
    *,
    offline: bool = False,
    value_range: tuple[float, float] | None = (0.0, 1.0),
    chunk: int = 128,
) -> Trace:
    """Walk from every candidate ``x`` (K, D), flattened, with label ``y`` (K,) in the directions UNDER and OVER.

    Step t = 0…T−1: one gradient step on the loss of the direction, projection of x' − x to the shell
    ε·t ≤ ‖·‖₂ ≤ ε·(t+1), clip to ``value_range``, and projection again where the clip has left the shell. ``start``
    (K, 2, D) are unit vectors that stand in for a difference of length zero. ``chunk`` candidates go through a
    shadow at once; another chunk changes rounding only. Raises ``BadInput`` when a candidate is inside all shadows or
    (online) inside none.
    """
    check_balance(shadows.inside, shadows.never, offline)
    forms = shadows.folded().forms(x[:1])
    everyone = torch.arange(len(x), device=x.device)

    def walked(part: slice) -> Trace:
        rows = everyone[part]
        return search_chunk(forms.now, rows, x[rows], y[rows], start[rows], settings, offline, value_range)

    parts = by_chunks(walked, len(x), chunk, forms.fewer)
    return Trace(
        torch.cat([part.inputs for part in parts]),
        torch.cat([part.radius for part in parts]),
        torch.cat([part.confidence for part in parts], dim=1),
    )


def search_chunk(
    shadows: Shadows,
    rows: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    start: torch.Tensor,
    settings: SearchSettings,
    offline: bool,
    value_range: tuple[float, float] | None,
) -> Trace:
    """Return the trace of the candidates ``rows``; see ``search``."""
    asked = shadows.models_for(rows)
    origin = x.unsqueeze(1).expand(-1, 2, -1)
    moved = origin.clone()
    inputs, radius, confidence = [], [], []
    for t in range(settings.steps):
        if t == 0 and not offline:
            # Both directions set out from x, where their losses differ in sign only: one pass serves both.
            gradient, _ = loss_gradient(shadows, asked, moved[:, :1], y, settings, offline)
            gradient = torch.cat([gradient, -gradient], dim=1)
        else:
            gradient, seen = loss_gradient(shadows, asked, moved, y, settings, offline)
            if t > 0:
                confidence.append(seen)
        moved = step_in_shell(origin, moved, gradient, start, t, settings, value_range)
        inputs.append(moved)
        radius.append(length(moved - origin).squeeze(-1))
    confidence.append(confidences(shadows, asked, moved, y))
    return Trace(torch.stack(inputs, 2), torch.stack(radius, 2), torch.stack(confidence, 3))


def loss_gradient(
    shadows: Shadows,
    asked: Asked,
    moved: torch.Tensor,
    y: torch.Tensor,
    settings: SearchSettings,
    offline: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ∂ℓ/∂x' at ``moved`` (K, Q, D) and the confidences (m, K, Q) found on the way.

    Q = 2 points a candidate, for UNDER and OVER, or 1, for UNDER.
    """
    if shadows.stacks is not None:
        return gradient_at_once(shadows.stacks, shadows.shape, asked, moved, y, settings, offline)
    ways = moved.shape[1]
    sign = signs(moved)
    gradient = torch.zeros_like(moved)
    seen = moved.new_zeros((len(asked.inside), *moved.shape[:2]))
    n_in, n_out = (side.sum(0).to(moved.dtype) for side in (asked.inside, asked.outside))
    for i in range(len(asked.inside)):
        for is_in, rows in ((True, asked.rows_in[i]), (False, asked.rows_out[i])):
            if len(rows) == 0:
                continue
            with torch.enable_grad():
                points = moved[rows].detach().requires_grad_(True)
                output = shadows.logits(i, is_in, points)
                entropy = own_entropy(output, y[rows], ways)
                if offline:
                    weight = -sign * settings.beta / n_out[rows, None]
                    margin = boundary_margin(output).unflatten(0, (-1, ways))
                    loss = (weight * entropy + settings.alpha / n_out[rows, None] * margin).sum()
                elif is_in:
                    loss = (sign * settings.alpha / n_in[rows, None] * entropy).sum()
                else:
                    loss = (-sign * settings.beta / n_out[rows, None] * entropy).sum()
                (found,) = torch.autograd.grad(loss, points)
            gradient[rows] += found
            seen[i, rows] = (-entropy.detach()).exp()
    return gradient, seen


def own_entropy(output: torch.Tensor, y: torch.Tensor, ways: int) -> torch.Tensor:
    """Return the cross entropy (K, ways) of logits (K·ways, classes) to the true labels ``y`` (K,)."""
    entropy: torch.Tensor = F.cross_entropy(output, y.repeat_interleave(ways), reduction="none")
    return entropy.reshape(-1, ways)


@torch.no_grad()
def confidences(shadows: Shadows, asked: Asked, moved: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return (m, K, 2): each shadow's probability of the true label (unlearned model inside, original outside).

    Zero where a shadow is asked nothing (a candidate that it trained on and kept).
    """
    if shadows.stacks is not None:
        return confidences_at_once(shadows.stacks, shadows.shape, asked, moved, y)
    seen = moved.new_zeros((len(asked.inside), *moved.shape[:2]))
    for i in range(len(asked.inside)):
        for is_in, rows in ((True, asked.rows_in[i]), (False, asked.rows_out[i])):
            if len(rows):
                output = shadows.logits(i, is_in, moved[rows])
                seen[i, rows] = (-own_entropy(output, y[rows], moved.shape[1])).exp()
    return seen


def step_in_shell(
    origin: torch.Tensor,
    moved: torch.Tensor,
    gradient: torch.Tensor,
    start: torch.Tensor,
    t: int,
    settings: SearchSettings,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return x' after one gradient step, with ε·t ≤ ‖x' − x‖₂ ≤ ε·(t+1) wherever the range allows it."""
    inner, outer = settings.epsilon * t, settings.epsilon * (t + 1)
    delta = moved - settings.learning_rate * gradient - origin
    shell = into_shell(delta, start, inner, outer, settings.norm)
    return in_range(origin, shell, start, inner, outer, value_range, settings.norm)


def into_shell(
    delta: torch.Tensor, start: torch.Tensor, inner: float, outer: float, norm_name: str = "l2"
) -> torch.Tensor:
    """Return ``delta`` scaled to a length between ``inner`` and ``outer``; a zero difference takes ``start``'s way."""
    norm = length(delta, norm_name)
    delta = torch.where(norm == 0, start / length(start, norm_name) * inner, delta)
    norm = torch.where(norm == 0, torch.full_like(norm, inner), norm)
    return delta * (norm.clamp(inner, outer) / norm.clamp_min(torch.finfo(norm.dtype).tiny))


def in_range(
    origin: torch.Tensor,
    delta: torch.Tensor,
    start: torch.Tensor,
    inner: float,
    outer: float,
    value_range: tuple[float, float] | None,
    norm_name: str = "l2",
) -> torch.Tensor:
    """Return origin + delta inside ``value_range``, pushed outwards again (three times) where the clip cut it short."""
    moved = origin + delta
    if value_range is None:
        return moved
    moved = moved.clamp(*value_range)
    for _ in range(REPROJECTIONS):
        moved = (origin + into_shell(moved - origin, start, inner, outer, norm_name)).clamp(*value_range)
    return moved


def random_walk(
    x: torch.Tensor, start: torch.Tensor, radius: torch.Tensor, value_range: tuple[float, float] | None
) -> torch.Tensor:
    """Return (K, 2, T, D): points at the distances ``radius`` (K, 2, T) from ``x`` along the directions ``start``.

    The control of the search: same radii, same number of queries, no shadows.
    """
    origin, way = x[:, None, None], start.unsqueeze(2)
    far = radius.unsqueeze(-1)
    moved = origin + way * far
    if value_range is None:
        return moved
    moved = moved.clamp(*value_range)
    for _ in range(REPROJECTIONS):
        delta = moved - origin
        moved = (origin + delta * (far / length(delta).clamp_min(torch.finfo(far.dtype).tiny))).clamp(*value_range)
    return moved


def length(delta: torch.Tensor, norm_name: str = "l2") -> torch.Tensor:
    """Return the norm ("l2" or "linf") over the last dimension, which stays with length 1."""
    order = 2.0 if norm_name == "l2" else float("inf")
    norm: torch.Tensor = torch.linalg.vector_norm(delta, ord=order, dim=-1, keepdim=True)
    return norm


def check_balance(inside: torch.Tensor, outside: torch.Tensor, offline: bool) -> None:
    """Refuse candidates that no shadow has unlearned or that every shadow has seen."""
    if not bool(outside.any(0).all()):
        raise BadInput("a candidate is in the training set of every shadow; the search needs shadows that never saw it")
    if not offline and not bool(inside.any(0).all()):
        raise BadInput("a candidate is in no shadow's forget set; use the balanced design or the offline attack")

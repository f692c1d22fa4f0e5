"""Apollo's search for inputs near a candidate at which unlearned and never-trained models disagree.

Source: Apollo (arXiv 2506.09923), sections 4 and 5. The search reads the attacker's shadows only, never the target,
so one trace serves every target. Exact batched form: loop over the shadows, push all candidates and both directions
through each, and differentiate with respect to the inputs only. ``tests/test_search.py`` holds the same search
one point at a time and compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from audits.errors import BadInput

DIRECTIONS = ("under", "over")
REPROJECTIONS = 3


@dataclass(frozen=True)
class SearchSettings:
    """α, β, ε, T and the step size of the search; ``epsilon`` is the width of one shell in units of the inputs (L2)."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    alpha: float = 1.0
    beta: float = 4.0
    epsilon: float = 0.1
    steps: int = 5
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        for field in ("epsilon", "steps", "learning_rate"):
            if not getattr(self, field) > 0:
                raise BadInput(f"audit.search.{field} is {getattr(self, field)}; it must be above 0")
        for field in ("alpha", "beta"):
            if getattr(self, field) < 0:
                raise BadInput(f"audit.search.{field} is {getattr(self, field)}; it must be 0 or more")
        if self.alpha == 0 and self.beta == 0:
            raise BadInput("audit.search.alpha and audit.search.beta are both 0; at least one must be above 0")


@dataclass(frozen=True)
class Shadows:
    """The shadows of one group as the search sees them.

    ``inside``: (m, K) bool, was candidate k in shadow i's training set; ``unlearned[i]`` is asked about the points
    inside, ``original[i]`` about those outside. Offline, nothing is inside and ``unlearned`` is not read. ``shape`` is
    the shape of one point.
    """

    original: Sequence[nn.Module]
    unlearned: Sequence[nn.Module]
    inside: torch.Tensor
    shape: tuple[int, ...]

    def logits(self, i: int, inside: bool, points: torch.Tensor) -> torch.Tensor:
        """Return shadow i's logits (N·2, classes) for flattened points (N, 2, D)."""
        model = self.unlearned[i] if inside else self.original[i]
        output: torch.Tensor = model(points.reshape(-1, *self.shape))
        return output


@dataclass(frozen=True)
class Trace:
    """Where the search went. ``inputs``: (K, 2, T, D) x' (flattened) per direction and step; ``radius``: (K, 2, T) the
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
    check_balance(shadows.inside, offline)
    parts = [
        search_chunk(shadows, rows, x[rows], y[rows], start[rows], settings, offline, value_range)
        for rows in torch.arange(len(x), device=x.device).split(chunk)
    ]
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
    inside = shadows.inside[:, rows]
    origin = x.unsqueeze(1).expand(-1, 2, -1)
    moved = origin.clone()
    inputs, radius, confidence = [], [], []
    for t in range(settings.steps):
        gradient, seen = loss_gradient(shadows, inside, moved, y, settings, offline)
        if t > 0:
            confidence.append(seen)
        moved = step_in_shell(origin, moved, gradient, start, t, settings, value_range)
        inputs.append(moved)
        radius.append(length(moved - origin).squeeze(-1))
    confidence.append(confidences(shadows, inside, moved, y))
    return Trace(torch.stack(inputs, 2), torch.stack(radius, 2), torch.stack(confidence, 3))


def loss_gradient(
    shadows: Shadows,
    inside: torch.Tensor,
    moved: torch.Tensor,
    y: torch.Tensor,
    settings: SearchSettings,
    offline: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ∂ℓ/∂x' of both directions at ``moved`` (K, 2, D) and the confidences (m, K, 2) found on the way."""
    sign = torch.tensor([1.0, -1.0], dtype=moved.dtype, device=moved.device)
    gradient = torch.zeros_like(moved)
    seen = torch.empty((len(inside), *moved.shape[:2]), dtype=moved.dtype, device=moved.device)
    n_in, n_out = inside.sum(0), (~inside).sum(0)
    for i in range(len(inside)):
        for is_in in (True, False):
            rows = (inside[i] == is_in).nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            with torch.enable_grad():
                points = moved[rows].detach().requires_grad_(True)
                output = shadows.logits(i, is_in, points)
                truth = y[rows].repeat_interleave(2)
                entropy = F.cross_entropy(output, truth, reduction="none").unflatten(0, (-1, 2))
                if offline:
                    weight = -sign * settings.beta / n_out[rows, None]
                    margin = boundary_margin(output).unflatten(0, (-1, 2))
                    loss = (weight * entropy + settings.alpha / len(inside) * margin).sum()
                elif is_in:
                    loss = (sign * settings.alpha / n_in[rows, None] * entropy).sum()
                else:
                    loss = (-sign * settings.beta / n_out[rows, None] * entropy).sum()
                (found,) = torch.autograd.grad(loss, points)
            gradient[rows] += found
            seen[i, rows] = (-entropy.detach()).exp()
    return gradient, seen


@torch.no_grad()
def confidences(shadows: Shadows, inside: torch.Tensor, moved: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return (m, K, 2): each shadow's probability of the true label (unlearned model inside, original outside)."""
    seen = torch.empty((len(inside), *moved.shape[:2]), dtype=moved.dtype, device=moved.device)
    for i in range(len(inside)):
        for is_in in (True, False):
            rows = (inside[i] == is_in).nonzero().squeeze(1)
            if len(rows):
                entropy = F.cross_entropy(
                    shadows.logits(i, is_in, moved[rows]), y[rows].repeat_interleave(2), reduction="none"
                )
                seen[i, rows] = (-entropy).exp().unflatten(0, (-1, 2))
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
    return in_range(origin, into_shell(delta, start, inner, outer), start, inner, outer, value_range)


def into_shell(delta: torch.Tensor, start: torch.Tensor, inner: float, outer: float) -> torch.Tensor:
    """Return ``delta`` scaled to a length between ``inner`` and ``outer``; a zero difference takes ``start``'s way."""
    norm = length(delta)
    delta = torch.where(norm == 0, start * inner, delta)
    norm = torch.where(norm == 0, torch.full_like(norm, inner), norm)
    return delta * (norm.clamp(inner, outer) / norm.clamp_min(torch.finfo(norm.dtype).tiny))


def in_range(
    origin: torch.Tensor,
    delta: torch.Tensor,
    start: torch.Tensor,
    inner: float,
    outer: float,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return origin + delta inside ``value_range``, pushed outwards again (three times) where the clip cut it short."""
    moved = origin + delta
    if value_range is None:
        return moved
    moved = moved.clamp(*value_range)
    for _ in range(REPROJECTIONS):
        moved = (origin + into_shell(moved - origin, start, inner, outer)).clamp(*value_range)
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


def boundary_margin(output: torch.Tensor) -> torch.Tensor:
    """Return the distance to the decision boundary in logits, top1 − top2, of logits (N, classes)."""
    top = output.topk(2, dim=1).values
    return top[:, 0] - top[:, 1]


def length(delta: torch.Tensor) -> torch.Tensor:
    """Return the L2 norm over the last dimension, which stays with length 1."""
    norm: torch.Tensor = torch.linalg.vector_norm(delta, dim=-1, keepdim=True)
    return norm


def check_balance(inside: torch.Tensor, offline: bool) -> None:
    """Refuse candidates that no shadow saw or that all shadows saw."""
    if bool(inside.all(0).any()):
        raise BadInput("a candidate is in the training set of every shadow; the search needs shadows that never saw it")
    if not offline and not bool(inside.any(0).all()):
        raise BadInput("a candidate is in no shadow's training set; use the balanced design or the offline attack")

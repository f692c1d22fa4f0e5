"""Steps of a walk along a decision boundary."""

from __future__ import annotations

from collections.abc import Callable

import torch

LabelFunction = Callable[[torch.Tensor], torch.Tensor]
"""Labels (N,) int64 of points (N, D); the N rows are Q questions each about the K points, point by point."""


Across = Callable[[torch.Tensor], torch.Tensor]


def to_boundary(across: Across, x: torch.Tensor, end: torch.Tensor, halvings: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Bisect between ``x`` and ``end`` (K, D) across; return a point across, and the bracket's width (K,)."""
    low = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    high = torch.ones_like(low)
    for _ in range(halvings):
        middle = (low + high) / 2
        over = across(between(x, end, middle)[:, None])[:, 0]
        high, low = torch.where(over, middle, high), torch.where(over, low, middle)
    return between(x, end, high), (high - low) * length(end - x)


def between(x: torch.Tensor, end: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return x + weight·(end − x), worked out in float64, in the dtype of ``x``."""
    return (x.double() + weight[:, None] * (end.double() - x.double())).to(x.dtype)


def step(
    across: Across,
    edge: torch.Tensor,
    way: torch.Tensor,
    size: torch.Tensor,
    tries: int,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return the farthest of the points at size, size/2, size/4, … along ``way`` that is across; else ``edge``."""
    sizes = size[:, None] * 0.5 ** torch.arange(tries, dtype=torch.float64, device=edge.device)
    tried = clip(edge[:, None] + sizes[..., None].to(edge.dtype) * way[:, None], value_range)
    over = across(tried)
    first = over.int().argmax(1)
    chosen = tried[torch.arange(len(edge), device=edge.device), first]
    return torch.where(over.any(1)[:, None], chosen, edge)


def clip(points: torch.Tensor, value_range: tuple[float, float] | None) -> torch.Tensor:
    """Return ``points`` inside the range of the data, if it has one."""
    return points if value_range is None else points.clamp(*value_range)


def length(delta: torch.Tensor) -> torch.Tensor:
    """Return the L2 norm over the last dimension in float64."""
    norm: torch.Tensor = torch.linalg.vector_norm(delta.double(), dim=-1)
    return norm

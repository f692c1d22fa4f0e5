"""The walks of HopSkipJump: where they stand, and how a round leads on from there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from audits.queries.boundary_walk import Across, length, step, to_boundary
from audits.queries.hop_skip_jump_draws import Draws
from audits.queries.hop_skip_jump_schedule import Schedule


@dataclass(frozen=True)
class State:
    """Positions of K walks: ``edge`` (K, D), just across; its ``distance`` (K,) from x; ``gap`` (K,), the width of the
    bracket around the boundary."""

    edge: torch.Tensor
    distance: torch.Tensor
    gap: torch.Tensor


def nearer(one: State, other: State) -> State:
    """Return, point by point, ``one`` where it is nearer than ``other``."""
    closer = one.distance < other.distance
    return State(
        torch.where(closer[:, None], one.edge, other.edge),
        torch.where(closer, one.distance, other.distance),
        torch.where(closer, one.gap, other.gap),
    )


def walk(
    across: Across,
    x: torch.Tensor,
    state: State,
    draws: Draws,
    restart: int,
    rounds: range,
    schedule: Schedule,
    value_range: tuple[float, float] | None,
) -> State:
    """Return where one walk stands after ``rounds``."""
    resolved = 8 * torch.finfo(x.dtype).eps * math.sqrt(x.shape[1])
    for t in rounds:
        if t == 1 and value_range is not None:
            width = torch.full_like(state.distance, 0.1 * (value_range[1] - value_range[0]))
        else:
            width = state.distance / x.shape[1]
        width = torch.maximum(torch.maximum(width, state.gap), resolved * state.edge.abs().amax(1).double())
        count = schedule.directions_of(t)
        directions = draws.directions(restart, t, count, schedule.directions_before(t))
        way = normal(across, state.edge, width, directions, count, value_range)
        moved = step(across, state.edge, way, state.distance / math.sqrt(t), schedule.tries, value_range)
        moved, gap = to_boundary(across, x, moved, schedule.halvings)
        state = nearer(State(moved, length(moved - x), gap), state)
    return state


def normal(
    across: Across,
    edge: torch.Tensor,
    width: torch.Tensor,
    directions: Iterable[torch.Tensor],
    count: int,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return the unit vector (K, D) that leads deeper across at ``edge``: Σ (φ_b − mean φ) u_b, or ±Σ u_b if all agree.

    ``directions``: the u_b, ``count`` in all, in parts (K, part, D). Running sums of φ_b u_b and u_b: neither
    directions nor answers are kept here.
    """
    sums, agreement = edge.new_zeros(len(edge), 2, edge.shape[1]), edge.new_zeros(len(edge))
    for taken in directions:
        near = torch.addcmul(edge[:, None], width[:, None, None].to(edge.dtype), taken)
        if value_range is not None:
            near.clamp_(*value_range)
            taken = near - edge[:, None]
        side = torch.where(across(near), 1.0, -1.0).to(edge.dtype)
        sums += torch.stack([side, torch.ones_like(side)], 1) @ taken
        agreement += side.sum(1)
    mean = (agreement / count)[:, None]
    way = torch.where(mean.abs() == 1, sums[:, 0], sums[:, 0] - mean * sums[:, 1])
    norm = torch.linalg.vector_norm(way, dim=1, keepdim=True)
    unit: torch.Tensor = way / norm.clamp_min(torch.finfo(way.dtype).tiny)
    return unit

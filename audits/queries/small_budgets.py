"""HopSkipJump (Chen, Jordan, Wainwright, arXiv 1904.02144) within a few labels: distances to the decision boundary.

Batched over points with a budget that is known beforehand: every point is asked equally often, whatever the answers.
Deviations from the paper: the nearest of a few given start points begins the walk in place of noise; the width of the
finite differences is never below that of the bracket which the bisection left; all tried step sizes are asked at once;
a walk keeps its best point; several walks (restarts) share the budget, since they help more than longer ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from audits.errors import BadInput
from audits.queries.boundary_walk import Across, LabelFunction, clip, length, step, to_boundary
from audits.queries.hop_skip_jump_draws import repeated


@dataclass(frozen=True)
class SmallSchedule:
    """A budget of labels: ``restarts`` walks of ``rounds`` rounds from ``starts`` start points each.

    ``halvings`` of every bisection; ``directions`` asked for the gradient in round 1, times √t in round t; ``tries``
    step sizes a round.
    """

    restarts: int
    rounds: int
    starts: int
    halvings: int
    tries: int
    directions: int = 0

    def directions_of(self, t: int) -> int:
        """Return how many directions round t = 1, 2, … asks."""
        return math.floor(self.directions * math.sqrt(t))

    @property
    def queries(self) -> int:
        """Labels asked about every point, the one at the point itself included."""
        rounds = sum(self.directions_of(t) + self.tries + self.halvings for t in range(1, self.rounds + 1))
        return 1 + self.restarts * (self.starts + self.halvings + rounds)


TIERS = (
    SmallSchedule(restarts=2, rounds=8, starts=5, halvings=12, tries=5, directions=15),
    SmallSchedule(restarts=1, rounds=5, starts=5, halvings=10, tries=4, directions=20),
    SmallSchedule(restarts=1, rounds=2, starts=4, halvings=7, tries=3, directions=12),
    SmallSchedule(restarts=1, rounds=1, starts=2, halvings=4, tries=2, directions=4),
    SmallSchedule(restarts=1, rounds=0, starts=2, halvings=1, tries=0),
)


def schedule_within(budget: int) -> SmallSchedule:
    """Return the schedule for at most ``budget`` queries a point; what a tier leaves over goes into directions.

    Without rounds it goes into halvings. Raises ``BadInput`` below the smallest budget, 4.
    """
    for tier in TIERS:
        if tier.queries <= budget:
            field = "directions" if tier.rounds else "halvings"
            grown = tier
            while (larger := replace(grown, **{field: getattr(grown, field) + 1})).queries <= budget:
                grown = larger
            return grown
    raise BadInput(f"audit.queries is {budget}; a walk to the boundary takes {TIERS[-1].queries} labels or more")


def signed_distances(
    labels: LabelFunction,
    x: torch.Tensor,
    y: torch.Tensor,
    away: torch.Tensor,
    home: torch.Tensor,
    generators: Sequence[torch.Generator],
    schedule: SmallSchedule,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return the L2 distance (K,) of ``x`` (K, D) to the nearest boundary of class ``y`` (K,) that was found, float64.

    Positive where x is labelled y; where it is not, minus the distance to the nearest point found that is. ``away`` and
    ``home`` (K, restarts·starts, D): start points to use if x is labelled y (they should not be) and if not (they
    should be), nearest first. No start on the other side: +inf or −inf. ``generators``: one a point, on the CPU, so
    that a point's answer does not depend on its batch mates; where ``x`` holds the points several times over, once for
    each of the models that are asked at once, one of a point serves them all. Asks exactly ``schedule.queries`` labels
    a point.
    """
    count, dimensions = x.shape

    def ask(points: torch.Tensor) -> torch.Tensor:
        return labels(points.reshape(-1, dimensions)).reshape(count, -1) == y[:, None]

    right = ask(x[:, None])[:, 0]

    def across(points: torch.Tensor) -> torch.Tensor:
        return ask(points) != right[:, None]

    begin = torch.where(right[:, None, None], away, home)
    found = [
        walk(across, x, begin[:, first :: schedule.restarts], generators, schedule, value_range)
        for first in range(schedule.restarts)
    ]
    nearest = torch.stack(found).amin(0)
    return torch.where(right, nearest, -nearest)


def walk(
    across: Across,
    x: torch.Tensor,
    begin: torch.Tensor,
    generators: Sequence[torch.Generator],
    schedule: SmallSchedule,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return the smallest distance (K,) found by one walk from the nearest of ``begin`` (K, starts, D) across."""
    far = torch.where(across(begin), length(begin - x[:, None]), math.inf)
    reached, place = far.min(1)
    edge = begin[torch.arange(len(x), device=x.device), place]
    edge, gap = to_boundary(across, x, edge, schedule.halvings)
    for t in range(1, schedule.rounds + 1):
        distance = length(edge - x)
        width = torch.maximum(distance / x.shape[1], gap)
        draws = directions(generators, schedule.directions_of(t), x)
        way = normal(across, edge, draws, width, value_range)
        moved = step(across, edge, way, distance / math.sqrt(t), schedule.tries, value_range)
        moved, moved_gap = to_boundary(across, x, moved, schedule.halvings)
        closer = length(moved - x) < distance
        edge, gap = torch.where(closer[:, None], moved, edge), torch.where(closer, moved_gap, gap)
    return torch.where(reached.isfinite(), length(edge - x), math.inf)


def directions(generators: Sequence[torch.Generator], count: int, x: torch.Tensor) -> torch.Tensor:
    """Return ``count`` unit vectors a point (K, count, D), each point's drawn from its own generator."""
    draws = torch.stack([torch.randn(count, x.shape[1], generator=own) for own in generators]).to(x)
    unit: torch.Tensor = draws / torch.linalg.vector_norm(draws, dim=-1, keepdim=True)
    return repeated(unit, x)


def normal(
    across: Across,
    edge: torch.Tensor,
    draws: torch.Tensor,
    width: torch.Tensor,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return the unit vector (K, D) that leads deeper across the boundary at ``edge``, by finite differences."""
    near = clip(edge[:, None] + width[:, None, None].to(edge.dtype) * draws, value_range)
    taken = (near - edge[:, None]) / width[:, None, None].to(edge.dtype)
    side = torch.where(across(near), 1.0, -1.0).to(edge.dtype)
    mean = side.mean(1, keepdim=True)
    weight = torch.where(mean.abs() == 1, side, side - mean)
    way = (weight[..., None] * taken).mean(1)
    norm = torch.linalg.vector_norm(way, dim=-1, keepdim=True)
    unit: torch.Tensor = way / norm.clamp_min(torch.finfo(way.dtype).tiny)
    return unit

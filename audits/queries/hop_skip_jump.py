"""HopSkipJump (Chen, Jordan, Wainwright, arXiv 1904.02144), L2: signed distances to a class from labels alone.

Batched over points with a budget that is known beforehand: every point is asked ``Schedule.queries`` times, whatever
the answers. Start points and directions belong to the point's id and are the same for every model that is asked, so
that distances of one point compare models and not luck.

Deviations from the paper: ``starts`` points (images of a pool, then uniform noise) are all asked, and walk r begins at
the r-th nearest of those across; several walks share the budget, and only the nearest of them goes on for ``further``
rounds; directions of a walk may be at right angles to each other (``Schedule.orthogonal``); the number of halvings is
fixed; all step sizes of a round are asked at once and the largest that stays across
is taken; a walk keeps its best point and ends on the boundary; finite differences are never narrower than the bracket
that the bisection left, nor than what the dtype resolves; without a box those of round 1 are as wide as later ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from audits.errors import BadInput
from audits.queries.boundary_walk import LabelFunction, length, to_boundary
from audits.queries.hop_skip_jump_draws import Draws
from audits.queries.hop_skip_jump_schedule import ABSOLUTE, PLAIN, RANK, Schedule
from audits.queries.hop_skip_jump_walk import State, nearer, walk
from audits.queries.start_points import with_noise
from audits.queries.together import Together

__all__ = ["ABSOLUTE", "PLAIN", "PREDICTED", "RANK", "Found", "Schedule", "distances", "distances_of_models"]

PREDICTED = -1
"""In place of a class: the one that the model itself predicts at x."""

NUMBERS_AT_ONCE = 2**18
"""Directions are drawn, asked and summed up in parts of so many numbers, 1 MiB in float32: with more, the layers of a
small network leave a CPU's cache. The draws do not depend on it."""

NUMBERS_ON_A_GPU = 2**26
"""As ``NUMBERS_AT_ONCE``, where there is no cache to leave and every part is a launch more: 256 MiB in float32."""

SHARED_BYTES = 2**26
"""Directions that are kept for the next model take so much memory at most."""

FEWEST_POINTS = 32
"""Models are asked about so many points at once or more: with fewer, a question costs more than its answer."""


@dataclass(frozen=True)
class Found:
    """Findings of a search about K points.

    ``distance``: (K,) float64, L2, positive where x is labelled y*, else minus the distance to the nearest point found
    that is; NaN where failed. ``point``: (K, D), the nearest point found on the other side, NaN where failed.
    ``failed``: (K,) bool, none of the start points was on the other side.
    """

    distance: torch.Tensor
    point: torch.Tensor
    failed: torch.Tensor


@torch.no_grad()
def distances(
    labels: LabelFunction,
    x: torch.Tensor,
    y: torch.Tensor,
    ids: npt.NDArray[np.int64] | Sequence[int],
    starts: torch.Tensor | None,
    schedule: Schedule,
    seed: int,
    value_range: tuple[float, float] | None,
    class_of_interest: torch.Tensor | None = None,
) -> Found:
    """Return the signed distances of ``x`` (K, D), float32 or float64, to the boundary of class y* of one model.

    ``labels`` gives labels (N,) int64 of points (N, D): N/K questions about each of the K points, point by point. y* is
    ``y`` (K,) int64 unless ``class_of_interest`` (K,) names another class; ``PREDICTED`` in it stands for the model's
    own class at x, and the distance is then positive. ``ids`` (K,): whole numbers from 0 that, with ``seed``, decide a
    point's random draws. ``starts`` (K, S, D) with S up to ``schedule.starts``: see ``start_points``; uniform noise in
    ``value_range`` makes up for those missing. ``value_range``: the box of allowed inputs, to which every question is
    clipped, or None.

    Asks exactly ``schedule.queries`` labels about every point. Beyond x it holds about K·D·(``starts`` + ``tries``)
    numbers and max(K·D, 2¹⁸) for the directions, however many. Points in other batches get equal distances up to
    rounding. Raises ``BadInput`` for shapes that do not fit, ids below 0, points outside the box, or missing starts
    without a box.
    """
    wanted = y if class_of_interest is None else class_of_interest
    check(x, wanted, ids, starts, schedule, value_range)
    draws = Draws(ids, seed, x, rows_at_once(x), orthogonal=schedule.orthogonal)
    return search(labels, x, wanted, starts, draws, schedule, value_range)


@torch.no_grad()
def distances_of_models(
    labels: Sequence[LabelFunction] | Together,
    x: torch.Tensor,
    y: torch.Tensor,
    ids: npt.NDArray[np.int64] | Sequence[int],
    starts: torch.Tensor | None,
    schedule: Schedule,
    seed: int,
    value_range: tuple[float, float] | None,
    class_of_interest: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the distances (models, K) float64 that ``distances`` finds for each model of ``labels``; NaN where failed.

    What is the same for all models is drawn once: start points and directions. Points go in parts whose directions
    take 64 MiB, or in parts of 32 points, and then some rounds are drawn anew for every model. Each model is asked
    about one part after the other, ``schedule.queries`` labels about every point. With one part the result is that of
    ``distances`` bit for bit, with several but for rounding. Models in ``Together`` are walked to their boundaries at
    once.
    """
    wanted = y if class_of_interest is None else class_of_interest
    check(x, wanted, ids, starts, schedule, value_range)
    models = labels.count if isinstance(labels, Together) else len(labels)
    found = torch.empty(models, len(x), dtype=torch.float64, device=x.device)
    a_point = schedule.all_directions * x.shape[1] * x.element_size()
    at_once = max(FEWEST_POINTS, SHARED_BYTES // max(1, a_point))
    for first in range(0, len(x), at_once):
        part = slice(first, first + at_once)
        near, star = x[part], wanted[part]
        copies = near.repeat(models, 1) if isinstance(labels, Together) else near
        draws = Draws(ids[part], seed, copies, rows_at_once(x), SHARED_BYTES, orthogonal=schedule.orthogonal)
        begin = with_noise(near, None if starts is None else starts[part], schedule.starts, draws, value_range)
        if isinstance(labels, Together):
            star, begin = star.repeat(models), begin.repeat(models, 1, 1)
            distance = search(labels, copies, star, begin, draws, schedule, value_range).distance
            found[:, part] = distance.reshape(models, -1)
            continue
        for one, distance in zip(labels, found, strict=True):
            distance[part] = search(one, near, star, begin, draws, schedule, value_range).distance
    return found


def rows_at_once(x: torch.Tensor) -> int:
    """Return how many directions of the dimension of ``x`` (K, D) are drawn at once."""
    return (NUMBERS_AT_ONCE if x.device.type == "cpu" else NUMBERS_ON_A_GPU) // x.shape[1]


def search(
    labels: LabelFunction,
    x: torch.Tensor,
    wanted: torch.Tensor,
    starts: torch.Tensor | None,
    draws: Draws,
    schedule: Schedule,
    value_range: tuple[float, float] | None,
) -> Found:
    """Return what one model's search finds; ``wanted`` (K,) are the classes y*."""
    count, dimensions = x.shape

    def ask(points: torch.Tensor) -> torch.Tensor:
        return labels(points.reshape(-1, dimensions)).reshape(count, -1)

    predicted = ask(x[:, None])[:, 0]
    star = torch.where(wanted == PREDICTED, predicted, wanted)
    inside = predicted == star

    def across(points: torch.Tensor) -> torch.Tensor:
        return (ask(points) == star[:, None]) != inside[:, None]

    begin = with_noise(x, starts, schedule.starts, draws, value_range)
    far = torch.where(across(begin), length(begin - x[:, None]), math.inf)
    order = far.argsort(stable=True, dim=1)
    usable = far.isfinite().sum(1)
    best = State(x, *(torch.full((count,), math.inf, dtype=torch.float64, device=x.device) for _ in range(2)))
    first = range(1, schedule.rounds + 1)
    for restart in range(schedule.restarts):
        place = order.gather(1, (restart % usable.clamp_min(1))[:, None])[:, 0]
        start = begin[torch.arange(count, device=x.device), place]
        edge, gap = to_boundary(across, x, start, schedule.halvings)
        state = State(edge, length(edge - x), gap)
        best = nearer(walk(across, x, state, draws, restart, first, schedule, value_range), best)
    last = range(schedule.rounds + 1, schedule.rounds + schedule.further + 1)
    best = walk(across, x, best, draws, schedule.restarts, last, schedule, value_range)
    failed = usable == 0
    distance = torch.where(inside, best.distance, -best.distance)
    return Found(torch.where(failed, math.nan, distance), torch.where(failed[:, None], math.nan, best.edge), failed)


def check(
    x: torch.Tensor,
    wanted: torch.Tensor,
    ids: npt.NDArray[np.int64] | Sequence[int],
    starts: torch.Tensor | None,
    schedule: Schedule,
    value_range: tuple[float, float] | None,
) -> None:
    """Refuse what cannot be searched; ``wanted`` (K,) are the classes y*."""
    if x.ndim != 2 or not len(x) or len(wanted) != len(x) or len(ids) != len(x):
        raise BadInput(
            f"x has shape {tuple(x.shape)}, with {len(wanted)} classes and {len(ids)} ids; "
            "give K points as rows of x, and one class and one id for each"
        )
    if min(ids) < 0:
        raise BadInput(f"ids has {min(ids)}; give whole numbers from 0")
    if starts is not None and (starts.ndim != 3 or (len(starts), starts.shape[2]) != tuple(x.shape)):
        raise BadInput(f"starts has shape {tuple(starts.shape)}; allowed for these points: ({len(x)}, S, {x.shape[1]})")
    given = 0 if starts is None else starts.shape[1]
    if given > schedule.starts or (value_range is None and given < schedule.starts):
        raise BadInput(
            f"{given} start points a point are given, the schedule asks {schedule.starts}; "
            "give as many (fewer only with a value_range, in which noise is drawn)"
        )
    if value_range is not None and not (bool((x >= value_range[0]).all()) and bool((x <= value_range[1]).all())):
        raise BadInput(
            f"x goes from {float(x.min())} to {float(x.max())}; allowed: {value_range[0]} to {value_range[1]}"
        )

"""Twins: two models of complementary halves of a pool, and what each keeps of its half when it drops the points on top.

What one twin keeps are non-members of the other that went through the same rule (``removal``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Bools, Ids
from audits.data.groups import halves
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator


@dataclass(frozen=True)
class Twins:
    """``half`` (2, 2n) bool: which points of the pool each twin trains on; ``seeds``: of its first training,
    ``retraining_seeds``: of the one on what it keeps."""

    half: Bools
    seeds: tuple[int, int]
    retraining_seeds: tuple[int, int]


def draw_twins(points: int, seed: int, *index: int | str, groups: Ids | None = None) -> Twins:
    """Return twins of a pool of ``points``, halved at random; ``index`` tells several of one pool apart.

    Targets and shadows are drawn alike. ``groups``: (points,) of the pool's points; each then stays with one twin, and
    each twin has half of the groups of every size. Raises BadInput unless ``points`` is even and 4 or more.
    """
    if points < 4 or points % 2:
        raise BadInput(f"points is {points}; allowed: an even number, 4 or more, of which each twin has half")
    rng = numpy_generator(derive_seed(seed, Purpose.TWINS, *index))
    if groups is None:
        order = rng.permutation(points)
        first = np.zeros(points, bool)
        first[order[: points // 2]] = True
    else:
        first = halves(groups, rng)
    trained, again = (
        (derive_seed(seed, purpose, *index, 0), derive_seed(seed, purpose, *index, 1))
        for purpose in (Purpose.TWIN, Purpose.RETRAINED_TWIN)
    )
    return Twins(np.stack([first, ~first]), trained, again)


def kept_points(half: Bools, scores: ArrayLike, share: float) -> Bools:
    """Return which points (M, 2n) each model keeps: all of its ``half`` but the round(share·n) of highest score.

    ``scores`` (M, 2n): each model's ranking of its own points; those of others are not read. A half ends between two
    integers: Python's round, to the even one. Of equal scores the first in the pool are removed. Raises BadInput for a
    share outside [0, 1), shapes that do not fit, scores that are not numbers, and where nobody is left.
    """
    ranked = np.asarray(scores, np.float64)
    if half.ndim != 2 or half.dtype != bool or ranked.shape != half.shape:
        raise BadInput(f"half is {half.dtype} {half.shape} and scores {ranked.shape}; allowed: bool (models, points)")
    if not 0 <= share < 1:
        raise BadInput(f"share is {share}; allowed: 0 up to, but not, 1 (of a model's points to remove)")
    if np.isnan(ranked[half]).any():
        raise BadInput("scores of a model's own points are not numbers; rank each point that it trains on")
    kept = half.copy()
    for model, row in enumerate(ranked):
        own = np.flatnonzero(half[model])
        removed = round(share * len(own))
        if removed == len(own):
            raise BadInput(f"share is {share}, which removes all {len(own)} points of model {model}; remove fewer")
        kept[model, own[np.argsort(-row[own], kind="stable")[:removed]]] = False
    return kept

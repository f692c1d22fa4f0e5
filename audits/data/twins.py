"""Twins: two models of complementary halves of a pool, so that what one trains on are non-members of the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

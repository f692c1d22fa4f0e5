"""The pool of a given model: some of its members and as many known non-members, and the rest of its training points.

The model was trained on n members somewhere else; u points are known that it has not seen. Some of the latter are test
points. The pool has k random members and k random known non-members. The other n − k members are filler: every shadow
trains on all of them and on a random half of the pool, hence on n points as the given model did.

If chance decided which n of the n + u points were members, then, given filler, pool and test points, every half of the
pool is equally likely to be the given model's, as it is to be a shadow's. By a recipe like that of the shadows it is
one of them, and what a shadow says of the points that it never saw is the exact null of its non-members. No model of
other points is needed: the auditor knows the filler, and shares it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Ids
from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator

FEWEST = 4
"""Members of a pool, at least."""


@dataclass(frozen=True)
class GivenPool:
    """``pool`` (2k,) ids, ascending; ``member`` (2k,) bool: the k that the given model was trained on.

    ``filler`` (n − k,): its other training points; ``test`` (T,): known non-members outside of the pool. Ascending.
    ``non_members``: u.
    """

    pool: Ids
    member: Bools
    filler: Ids
    test: Ids
    non_members: int

    @property
    def members(self) -> int:
        """The number n of points that the given model was trained on."""
        return int(self.member.sum()) + len(self.filler)


def half_of_pool(members: int, non_members: int, most: int, test: int) -> int:
    """Return k: as many as there are members, non-members beside ``test`` points, and ``most``.

    Raises BadInput where fewer than ``FEWEST`` are left.
    """
    found = min(members, non_members - test, most)
    if found < FEWEST:
        raise BadInput(
            f"target: {members} members and {non_members} known non-members, {test} of which are test points, leave "
            f"{max(found, 0)} of each for a pool; needed: {FEWEST} or more; lower split.test, or name more points"
        )
    return found


def draw_given_pool(members: Ids, non_members: Ids, most: int, test: int, seed: int) -> GivenPool:
    """Draw the pool of a model with so many ``members`` (n,), and ``test`` points, from ``non_members`` (u,).

    The test points do not depend on ``most``. Raises BadInput where points do not suffice.
    """
    half = half_of_pool(len(members), len(non_members), most, test)
    rng = numpy_generator(derive_seed(seed, "mia given pool"))
    outside, inside = rng.permutation(non_members), rng.permutation(members)
    pool = np.sort(np.concatenate([inside[:half], outside[test : test + half]]))
    return GivenPool(pool, np.isin(pool, inside[:half]), np.sort(inside[half:]), np.sort(outside[:test]), len(outside))

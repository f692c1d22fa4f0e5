"""Pools of points that share nothing, and test points outside of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Ids
from audits.data.groups import Part, check_groups, deal
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator


@dataclass(frozen=True)
class Pools:
    """``pools`` (S, 2n) point ids, ascending within each; ``test`` (T,): points of none of them."""

    pools: Ids
    test: Ids


def draw_pools(ids: Ids, pools: int, train_size: int, test: int, seed: int, groups: Ids | None = None) -> Pools:
    """Draw ``pools`` disjoint pools of 2 · ``train_size`` points and ``test`` others from ``ids``.

    The test points do not depend on how many pools there are. ``groups``: (N,) the group of every point of the data
    set, of which each is then in one pool, or among the test points, alone; pools have an even number of groups of each
    size, so that twins can share them out (``audits.data.groups.deal``; what it cuts off is used nowhere). Raises
    BadInput when the points do not suffice.
    """
    needed = pools * 2 * train_size + test
    if needed > len(ids):
        raise BadInput(
            f"split: {pools} pools of 2 × {train_size} points and {test} test points are {needed}, but there are "
            f"{len(ids)}; lower pools, train_size or test"
        )
    rng = numpy_generator(derive_seed(seed, Purpose.POOLS))
    if groups is not None:
        parts = [Part("split.test", test), *([Part("split.train_size", 2 * train_size, halved=True)] * pools)]
        check_groups(ids, groups, parts)
        tested, *whole, _ = deal(np.asarray(ids, np.int64), parts, groups, rng)
        return Pools(np.sort(np.stack(whole), axis=1), np.sort(tested))
    order = rng.permutation(np.asarray(ids, np.int64))
    drawn = order[test:needed].reshape(pools, 2 * train_size)
    return Pools(np.sort(drawn, axis=1), np.sort(order[:test]))

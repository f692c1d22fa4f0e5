"""Pools for a rehearsal: as many again, of the points that other pools and their test points leave over."""

from __future__ import annotations

import numpy as np

from audits.arrays import Ids
from audits.data.pools import Pools, draw_pools
from audits.errors import BadInput


def draw_left_over(
    ids: Ids, taken: Pools, pools: int, train_size: int, test: int, seed: int, groups: Ids | None = None
) -> Pools:
    """Draw pools as ``draw_pools`` does from the points of ``ids`` (N,) that are not ``taken``, nor of their groups.

    Raises BadInput when too few points are left, and says how many there must be.
    """
    gone = np.concatenate([taken.pools.ravel(), taken.test])
    left = ids[~np.isin(ids, gone)] if groups is None else ids[~np.isin(groups[ids], groups[gone])]
    needed = pools * 2 * train_size + test
    if needed > len(left):
        raise BadInput(
            f"a rehearsal takes {needed} points more ({pools} pools of 2 × {train_size}, {test} test points), but of "
            f"{len(ids)} the audit leaves {len(left)}; lower split.pools, split.train_size or split.test"
        )
    return draw_pools(left, pools, train_size, test, seed, groups)

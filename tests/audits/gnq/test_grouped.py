"""Pools and twins of whole groups."""

from __future__ import annotations

import numpy as np
import pytest

from audits.data.pools import draw_pools
from audits.data.twins import draw_twins
from audits.errors import BadInput

IDS = 2 * np.arange(300)
GROUPS = np.random.default_rng(0).permutation(np.repeat(np.arange(600), np.arange(600) % 4 + 1)[:600])


@pytest.mark.parametrize("seed", range(3))
def test_pools_and_twins_share_no_group(seed: int) -> None:
    drawn = draw_pools(IDS, 3, 20, 50, seed, GROUPS)
    assert drawn.pools.shape == (3, 40) and drawn.test.shape == (50,)
    names = [set(GROUPS[part].tolist()) for part in (*drawn.pools, drawn.test)]
    assert sum(map(len, names)) == len(set().union(*names))
    assert (np.diff(drawn.pools, axis=1) > 0).all() and np.isin(drawn.pools, IDS).all()
    for place, pool in enumerate(drawn.pools):
        found = [draw_twins(40, seed, place, "shadow", pair, groups=GROUPS[pool]).half for pair in range(4)]
        for first, second in found:
            assert first.sum() == 20 and (first != second).all()
            assert not set(GROUPS[pool[first]].tolist()) & set(GROUPS[pool[second]].tolist())
        assert len({half.tobytes() for half, _ in found}) > 1


def test_the_test_points_do_not_depend_on_the_number_of_pools() -> None:
    few, many = (draw_pools(IDS, pools, 20, 50, 1, GROUPS) for pools in (1, 3))
    assert few.test.tolist() == many.test.tolist() and few.pools[0].tolist() == many.pools[0].tolist()


def test_groups_larger_than_a_training_set_are_refused() -> None:
    with pytest.raises(BadInput, match=r"a group has 4 points, more than half of split\.train_size holds \(3 points\)"):
        draw_pools(IDS, 3, 3, 50, 0, GROUPS)

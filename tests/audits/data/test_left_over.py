"""Pools for a rehearsal: of points that the audit does not use, nor their groups."""

from __future__ import annotations

import numpy as np
import pytest

from audits.data.left_over import draw_left_over
from audits.data.pools import draw_pools
from audits.errors import BadInput

IDS = np.arange(0, 600, 2)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_rehearsal_shares_no_point_and_no_group_with_the_audit(grouped):
    groups = np.arange(600) // 6 if grouped else None
    taken = draw_pools(IDS, 3, 20, 10, seed=1, groups=groups)
    found = draw_left_over(IDS, taken, 3, 20, 10, seed=2, groups=groups)
    audit, rehearsal = ({*each.pools.ravel().tolist(), *each.test.tolist()} for each in (taken, found))
    assert len(audit) == len(rehearsal) == 130 and audit | rehearsal <= set(IDS.tolist())
    if groups is None:
        assert not audit & rehearsal
    else:
        assert not {*groups[sorted(audit)].tolist()} & {*groups[sorted(rehearsal)].tolist()}


def test_the_number_of_points_that_are_missing_is_told():
    taken = draw_pools(IDS, 3, 40, 10, seed=1)
    with pytest.raises(BadInput, match=r"takes 250 points more .* but of 300 the audit leaves 50; lower split.pools"):
        draw_left_over(IDS, taken, 3, 40, 10, seed=2)

"""Membership designs of whole groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.errors import BadInput
from audits.tmia.design import make_membership
from tests.audits.tmia.test_design import SPLIT
from tests.cases.families import as_one

IDS = 2 * np.arange(600)
GROUPS = np.random.default_rng(0).permutation(np.repeat(np.arange(1200), np.arange(1200) % 5 + 1)[:1200])


@as_one("filler", [80, None])
@as_one("seed", [0, 1, 2])
def test_each_group_is_in_one_part_and_in_a_target_whole_or_not_at_all(seed: int, filler: int | None) -> None:
    split = replace(SPLIT, filler=filler)
    found = make_membership(IDS, split, seed, GROUPS)
    parts = (found.candidates, found.attacker_points, found.filler)
    names = [set(GROUPS[part].tolist()) for part in parts]
    assert sum(map(len, names)) == len(set().union(*names))
    assert [len(part) for part in parts[:2]] == [split.candidates, split.attacker_points]
    assert len(found.filler) == filler if filler else len(found.filler) > 200
    assert sorted(np.concatenate([*parts, found.rest]).tolist()) == IDS.tolist()
    assert (found.membership.sum(1) == split.candidates // 2).all()
    assert (found.membership.sum(0) == split.targets // 2).all()
    for row, train in zip(found.membership, found.target, strict=True):
        inside = found.candidates[row]
        assert len(np.unique(train)) == split.train_size and np.isin(inside, train).all()
        assert not set(GROUPS[inside].tolist()) & set(GROUPS[found.candidates[~row]].tolist())


def test_a_filler_too_small_for_a_model_and_groups_too_large_are_refused() -> None:
    with pytest.raises(BadInput, match=r"split\.filler: data\.groups leave \d+ points of whole groups"):
        make_membership(IDS[:296], replace(SPLIT, filler=None), 0, GROUPS)
    with pytest.raises(BadInput, match=r"more than half of split\.candidates holds \(2 points\)"):
        make_membership(IDS, replace(SPLIT, candidates=4), 0, GROUPS)

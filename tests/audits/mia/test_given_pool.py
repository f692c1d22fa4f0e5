"""The pool of a given model: given the rest, its half is as random as a shadow's."""

from __future__ import annotations

from collections import Counter
from math import comb, sqrt

import numpy as np
import pytest

from audits.errors import BadInput
from audits.mia.given_pool import draw_given_pool
from tests.cases.simulations import fewer, sizes


def test_a_pool_is_cut_from_members_and_known_non_members() -> None:
    ids = np.random.default_rng(0).permutation(100)
    members, others = np.sort(ids[:30]), np.sort(ids[30:])
    found = draw_given_pool(members, others, 12, 40, seed=1)
    assert len(found.pool) == 24 and found.member.sum() == 12 and len(found.test) == 40
    assert sorted([*found.pool[found.member], *found.filler]) == members.tolist()
    assert found.members == len(members)
    assert not set(found.pool[~found.member]) & set(found.test) and set(found.test) < set(others)
    for part in (found.pool, found.filler, found.test):
        assert (np.diff(part) > 0).all()
    assert draw_given_pool(members, others, 20, 40, seed=1).test.tolist() == found.test.tolist()
    assert len(draw_given_pool(members, others, 100, 40, seed=1).filler) == 0


@sizes(0.12)
def test_given_filler_and_pool_every_half_is_as_likely(size: float) -> None:
    """Members by chance: whoever knows pool, filler and test points knows nothing of which half was the model's."""
    halves, filled = Counter[tuple[bool, ...]](), Counter[int]()
    rng, draws = np.random.default_rng(2), fewer(14_000, size)
    for draw in range(draws):
        ids = rng.permutation(17)
        found = draw_given_pool(np.sort(ids[:7]), np.sort(ids[7:]), 4, 6, seed=draw)
        halves[tuple(found.member.tolist())] += 1
        filled.update(found.filler.tolist())
    expected = draws / comb(8, 4)
    counts = np.array(list(halves.values()))
    assert len(counts) == comb(8, 4)
    assert ((counts - expected) ** 2 / expected).sum() < 112.3  # χ² of 69 degrees of freedom at .999
    assert max(filled.values()) / min(filled.values()) < 1 + 0.15 / sqrt(size)


def test_too_few_points_are_refused_with_their_numbers() -> None:
    members, others = np.arange(30), np.arange(30, 72)
    with pytest.raises(BadInput, match="30 members and 42 known non-members, 40 of which are test points, leave 2 of"):
        draw_given_pool(members, others, 12, 40, seed=0)

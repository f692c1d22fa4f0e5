"""Designs with retained candidates: who forgets, who keeps and who never saw them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.errors import BadInput
from tests.audits.apollo.design.small_design import SPLIT, design
from tests.cases.families import as_one

RETAINED = replace(SPLIT, shadows=16, candidates_retained=5, candidates_forget=3, candidates_unseen=6)


@pytest.mark.parametrize("m", [8, 16, 24])
@pytest.mark.parametrize("retained", [1, 4, 5])
def test_with_retained_candidates_each_is_forgotten_by_a_quarter_and_kept_by_a_quarter(m: int, retained: int) -> None:
    partition = design(replace(RETAINED, shadows=m, candidates_retained=retained))
    for shadow_set, asked in enumerate(partition.candidates):
        for group in (1, 2):
            shadows = partition.select("shadow", shadow_set, group)
            inside = partition.membership(shadows, asked.ids)
            forgotten = np.stack([np.isin(asked.ids, shadow.forget) for shadow in shadows])
            assert (forgotten.sum(0) == m // 8).all()
            assert ((inside & ~forgotten).sum(0) == m // 8).all()
            assert ((~inside).sum(0) == m // 4).all()
            # even within a shadow: about half of what it trains on is kept
            assert np.ptp(inside.sum(1)) <= 2
            assert np.ptp(forgotten.sum(1)) <= 2


def test_retained_candidates_are_in_the_retain_set_of_their_target_and_nobody_forgets_more_for_them() -> None:
    partition = design(RETAINED)
    targets = {member.index: member for member in partition.members if member.role == "target"}
    for asked in partition.candidates:
        assert (asked.forgotten.astype(int) + asked.unseen + asked.retained == 1).all()
        for index in np.unique(asked.target):
            own = asked.target == index
            assert [int((asked.group[own] == code).sum()) for code in range(3)] == [3, 6, 5]
            assert np.isin(asked.ids[own & asked.retained], targets[index].retain).all()
    assert {len(member.forget) for member in partition.members} == {SPLIT.forget_count}
    assert {len(member.train) for member in partition.members} == {SPLIT.train_size}


def test_pairs_stay_complementary_and_are_divided_anew_with_retained_candidates() -> None:
    partition = design(RETAINED)
    asked = np.unique(partition.candidates[0].ids)
    inside = partition.membership(partition.select("shadow", 0, 1), asked)
    assert (inside[::2] ^ inside[1::2]).all()
    assert len({row.tobytes() for row in inside}) == len(inside)


def test_growing_a_design_with_retained_candidates_leaves_earlier_models_as_they_were() -> None:
    before, after = design(RETAINED), design(replace(RETAINED, shadows=24))
    later = {member.name: member for member in after.members}
    for member in before.members:
        np.testing.assert_array_equal(member.train, later[member.name].train)
        np.testing.assert_array_equal(member.forget, later[member.name].forget)


@as_one(
    "change, says",
    [
        ({"shadows": 12}, "multiple of 8"),
        ({"candidates_retained": 33}, "allowed: 0 to 32"),
        ({"candidates_retained": 20}, "at most 31 candidates"),
        ({"forget": 0.9, "candidates_retained": 4, "candidates_forget": 10, "candidates_unseen": 5}, "needs 10"),
        ({"candidates_retained": -1}, "candidates.retained is -1"),
    ],
)
def test_retained_candidates_that_do_not_fit_are_refused(change: dict[str, float], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        design(replace(RETAINED, **change))

"""Designs that are refused or warned of: pools too small, halves that overlap or share points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.apollo.design.partition import Member, make_partition, overlap, overlap_warnings, shared_half_warnings
from audits.errors import BadInput
from tests.audits.apollo.design.small_design import SPLIT, design
from tests.cases.families import as_one


def member_of(name: str, train: list[int]) -> Member:
    return Member(name, "shadow", 0, 1, 0, np.array(train, dtype=np.int64), np.array(train[:1], dtype=np.int64))


def test_overlap_is_the_share_of_a_half_that_a_shadow_trains_on() -> None:
    assert overlap(replace(SPLIT, train_size=40, shadow_pool=160)) == 0.5


def test_half_an_overlap_is_fine_and_more_is_warned_of() -> None:
    assert overlap_warnings(replace(SPLIT, shadow_pool=160)) == ()
    (warning,) = overlap_warnings(replace(SPLIT, shadow_pool=158))
    assert "shadow_pool of at least 160" in warning
    assert design(replace(SPLIT, shadow_pool=158)).warnings == (warning,)


def test_shadows_made_of_candidates_are_warned_of() -> None:
    assert overlap_warnings(replace(SPLIT, train_size=32, shadow_pool=160)) == ()  # eight of 32 are candidates
    (warning,) = overlap_warnings(replace(SPLIT, train_size=31, shadow_pool=160))
    assert "candidates make up 26%" in warning and "train_size of at least 32" in warning


def test_targets_that_share_points_are_warned_of() -> None:
    assert overlap_warnings(replace(SPLIT, target_pool=160)) == ()
    (warning,) = overlap_warnings(replace(SPLIT, target_pool=159))
    assert "target_pool of at least 160" in warning


def test_groups_that_share_training_points_are_warned_of_with_their_number() -> None:
    searching = (member_of("a", [1, 2, 3, 50]), member_of("b", [3, 4]))
    judging = (member_of("c", [3, 4, 5, 50]),)
    (warning,) = shared_half_warnings((searching, judging), np.array([50]))
    assert "share 2 training points" in warning


def test_shadows_drawn_from_one_pool_instead_of_two_halves_are_caught() -> None:
    partition = design()
    asked = partition.candidates[0].ids
    first, second = partition.select("shadow", 0, 1), partition.select("shadow", 0, 2)
    assert shared_half_warnings((first, second), asked) == ()
    leaky = (replace(second[0], train=np.concatenate([second[0].train[:-5], first[0].train[-5:]])), *second[1:])
    stolen = np.setdiff1d(first[0].train[-5:], asked)
    (warning,) = shared_half_warnings((first, leaky), asked)
    assert f"share {len(stolen)} training points" in warning


@as_one(
    "change, says",
    [
        ({"target_pool": 200}, "the pools need 460 points, the data has 437"),
        ({"train_size": 161, "forget": 0.1, "shadow_pool": 200}, "train_size is 161"),
        ({"forget": 0.0}, "forget is 0.0"),
        ({"forget": 1.0}, "forget is 1.0"),
        ({"forget": -0.1}, "forget is -0.1"),
        ({"candidates_forget": 0}, "candidates.forget is 0"),
        ({"candidates_forget": 9, "candidates_unseen": 1, "targets_per_shadow_set": 1}, "allowed: 1 to 8"),
        ({"candidates_unseen": 0}, "candidates.unseen"),
        ({"candidates_unseen": 15, "targets_per_shadow_set": 1}, "below split.test_pool"),
        ({"shadows": 6}, "shadows is 6; .* multiple of 4"),
        ({"shadows": 0}, "shadows is 0"),
        ({"offline_shadows": 3}, "offline_shadows is 3"),
        ({"offline_shadows": 0}, "offline_shadows is 0"),
        ({"targets_per_shadow_set": 3}, "at most 16 candidates per shadow set"),
        ({"shadow_pool": 79}, "shadow_pool is 79"),
        ({"forget": 0.999, "train_size": 40}, "forget"),
    ],
)
def test_designs_that_cannot_be_filled_are_refused_in_one_line(change: dict[str, float], says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        make_partition(437, replace(SPLIT, **change), 0)
    assert "\n" not in str(caught.value)


def test_a_design_that_just_fits_is_accepted() -> None:
    snug = replace(SPLIT, shadow_pool=80, test_pool=17, targets_per_shadow_set=2)
    partition = make_partition(snug.points, snug, 0)
    assert len(partition.test) == 1

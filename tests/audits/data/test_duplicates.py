"""Copies across borders, against every pair of points compared one after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.data import duplicates
from audits.data.catalogue import Dataset, load
from audits.data.duplicates import NEAR, Borders, borders, copies, copy_groups, exact_copies, nearest_across
from tests.cases.small_data_sets import small_dataset


def slow_exact(inputs: npt.NDArray[Any], found: Borders) -> dict[int, int]:
    """Return each asked point and the first used point of another side with equal values."""
    pairs = {}
    for one in found.asked.tolist():
        for two in range(len(inputs)):
            apart = found.side[two] >= 0 and found.side[two] != found.side[one]
            if apart and inputs[one].tolist() == inputs[two].tolist():
                pairs[one] = two
                break
    return pairs


def slow_distance(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> float:
    """Return the distance of two images after their means are taken away and their lengths are made 1."""
    rows = []
    for image in (one, two):
        row = [float(value) - float(np.mean(image)) for value in image.ravel()]
        length = math.sqrt(sum(value**2 for value in row))
        rows.append([value / length if length else 0.0 for value in row])
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(*rows, strict=True)))


@given(st.integers(0, 2**32), st.integers(1, 7))
@settings(max_examples=4)
def test_exact_and_near_copies_are_those_of_every_pair(seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = rng.integers(0, 256, (20, 1, 6, 6)).astype(np.uint8)
    inputs[rng.permutation(20)[:6]] = inputs[rng.permutation(20)[:6]]
    side = rng.integers(-1, 4, 20)
    found = Borders(side, np.flatnonzero(side >= 2).astype(np.int64))
    used = np.flatnonzero(side >= 0)
    assert exact_copies(inputs, used, found) == slow_exact(inputs, found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "BLOCK", block)
        nearest, distance = nearest_across(inputs, used, found)
    for one, two, far in zip(found.asked, nearest, distance, strict=True):
        others = [slow_distance(inputs[one], inputs[other]) for other in used if side[other] != side[one]]
        assert far == pytest.approx(min(others, default=np.inf), abs=2e-3)
        assert not others or slow_distance(inputs[one], inputs[two]) == pytest.approx(far, abs=2e-3)


def test_copies_are_counted_across_borders_only_and_an_exact_pair_is_shown() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 256, (60, 1, 8, 8)).astype(np.uint8)
    inputs[30] = inputs[2]  # asked, on another side
    inputs[3] = inputs[4]  # both asked: each is a side of its own
    inputs[31] = inputs[32]  # one side
    inputs[59] = inputs[5]  # not used
    inputs[40] = inputs[6]
    inputs[40, 0, 0, 0] ^= 3  # near
    data = Dataset("made", inputs, np.arange(60, dtype=np.int64) % 2, ("a", "b"), (0.0, 1.0))
    found = borders(60, [np.arange(30, 59)], np.arange(20), None)
    told = copies(data, found)
    assert told is not None
    assert (told.asked, told.exact, told.near, told.example) == (20, 3, 1, (2, 30))
    alone = borders(60, [np.arange(30, 40)], np.arange(20), np.where(np.isin(np.arange(60), (3, 4)), 99, np.arange(60)))
    told = copies(data, alone)
    assert told is not None and (told.exact, told.near) == (1, 0)


def test_vectors_are_compared_in_units_of_their_columns_and_texts_not_at_all() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 40)).astype(np.float32) * np.logspace(-3, 3, 40).astype(np.float32)
    rows[:, 7] = 5
    rows[150] = rows[3]
    rows[150, 0] += 1e-4
    labels = np.arange(200, dtype=np.int64) % 2
    found = borders(200, [np.arange(100, 200)], np.arange(100), None)
    told = copies(Dataset("made", rows, labels, ("a", "b"), None), found)
    assert told is not None and (told.exact, told.near, told.example) == (0, 1, (3, 150))
    words = np.rint(np.abs(rows)).astype(np.float32)
    words[150] = words[3] = np.arange(40)
    words[150, 0] = 1
    told = copies(Dataset("made", words, labels, ("a", "b"), None), found)
    assert told is not None and (told.near, told.example) == (0, None)


def test_a_shift_in_brightness_is_a_near_copy_and_few_values_are_no_ground_for_one() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.integers(50, 200, (40, 1, 6, 6)).astype(np.uint8)
    inputs[20] = inputs[0] + 20
    labels = np.arange(40, dtype=np.int64) % 2
    found = borders(40, [np.arange(20, 40)], np.arange(20), None)
    told = copies(Dataset("made", inputs, labels, ("a", "b"), (0.0, 1.0)), found)
    assert told is not None and (told.exact, told.near, told.example) == (0, 1, (0, 20))
    small = small_dataset(40)
    told = copies(small, found)
    assert told is not None and told.near == 0


def test_groups_hold_each_point_with_its_copies_and_theirs() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 256, (60, 1, 8, 8)).astype(np.uint8)
    inputs[[7, 19, 33]] = inputs[2]
    inputs[40] = inputs[50]
    inputs[41] = inputs[50]
    inputs[41, 0, 0, 0] ^= 3
    data = Dataset("made", inputs, np.arange(60, dtype=np.int64) % 2, ("a", "b"), (0.0, 1.0))
    groups = copy_groups(data)
    together = [set(np.flatnonzero(groups == name).tolist()) for name in np.unique(groups)]
    assert sorted(map(sorted, (one for one in together if len(one) > 1))) == [[2, 7, 19, 33], [40, 41, 50]]
    told = copies(data.grouped(groups), borders(60, [], np.arange(60), groups))
    assert told is not None and told.example is None


def many_copies(originals: int, each: int) -> Dataset:
    """Return points of which every one has copies, with a little noise."""
    rng = np.random.default_rng(0)
    inputs = np.repeat(rng.integers(20, 230, (originals, 1, 8, 8)), each, axis=0) + rng.integers(-2, 3, (1, 1, 8, 8))
    inputs = inputs + rng.integers(-2, 3, inputs.shape)
    labels = np.arange(originals * each, dtype=np.int64) % 2
    return Dataset("made", inputs.astype(np.uint8), labels, ("a", "b"), (0.0, 1.0))


def test_copies_are_seen_where_all_points_have_one() -> None:
    data = many_copies(40, 2)
    told = copies(data, borders(80, [np.arange(1, 80, 2)], np.arange(0, 80, 2), None))
    assert told is not None and (told.asked, told.near) == (40, 40)


def test_groups_hold_all_of_many_copies_and_leave_none_across_them() -> None:
    data = many_copies(12, 15)
    groups = copy_groups(data)
    assert np.unique(groups.reshape(12, 15), axis=1).shape == (12, 1) and len(np.unique(groups)) == 12
    told = copies(data.grouped(groups), borders(180, [], np.arange(180), groups))
    assert told is not None and told.example is None


def test_designs_without_two_sides_have_no_copies() -> None:
    told = copies(small_dataset(6, floats=True), borders(6, [], np.array([2]), None))
    assert told is not None and told.example is None


def test_the_embedded_data_have_no_exact_copies() -> None:
    fashion14 = load("fashion14")
    asked = np.arange(len(fashion14), dtype=np.int64)
    found = borders(len(asked), [], asked, None)
    assert exact_copies(np.asarray(fashion14.inputs), asked, found) == {} and 0 < NEAR < 1

"""The design of a TMIA audit: exact balance, disjoint sets, nobody who leaks, and refusals with a field."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.arrays import Ids
from audits.data.classes import points_of
from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator
from audits.tmia.design import REPEATS, MembershipDesign, MembershipSplit, make_membership, other_side
from tests.cases.families import as_one

SPLIT = MembershipSplit(
    targets=6, reference_models=4, null_models=3, candidates=20, train_size=25, attacker_points=250, filler=80
)
POINTS = 400


def design(split: MembershipSplit = SPLIT, seed: int = 3, ids: Ids | None = None) -> MembershipDesign:
    return make_membership(np.arange(POINTS) if ids is None else ids, split, seed)


@st.composite
def splits(draw: st.DrawFn) -> MembershipSplit:
    half = draw(st.integers(1, 30))
    train_size = half + draw(st.integers(0, 40))
    return MembershipSplit(
        targets=2 * draw(st.integers(1, 5)),
        reference_models=draw(st.integers(1, 5)),
        null_models=draw(st.integers(0, 3)),
        candidates=2 * half,
        train_size=train_size,
        attacker_points=train_size + draw(st.integers(0, 100)),
        filler=train_size + draw(st.integers(0, 50)),
        overfitted_models=2 * draw(st.integers(0, 2)),
    )


@given(splits(), st.integers(0, 2**32), st.integers(0, 30))
@settings(max_examples=20)
def test_every_design_is_exactly_balanced_disjoint_and_of_the_right_sizes(
    split: MembershipSplit, seed: int, spare: int
) -> None:
    assert split.filler is not None
    ids = 7 + 3 * np.arange(split.candidates + split.attacker_points + split.filler + spare)
    found = make_membership(ids, split, seed)
    parts = (found.candidates, found.attacker_points, found.filler, found.rest)
    assert [len(part) for part in parts] == [split.candidates, split.attacker_points, split.filler, spare]
    assert sorted(np.concatenate(parts).tolist()) == ids.tolist()
    assert found.membership.shape == (split.targets, split.candidates)
    for target in range(split.targets):
        own = set(found.target[target].tolist())
        assert len(own) == split.train_size == len(found.target[target])  # nothing twice
        inside = [int(point) in own for point in found.candidates]
        assert inside == found.membership[target].tolist()
        assert sum(inside) == split.candidates // 2
        assert own - set(found.candidates.tolist()) <= set(found.filler.tolist())
    for candidate in range(split.candidates):
        assert sum(int(found.candidates[candidate]) in row for row in found.target) == split.targets // 2
    assert found.reference.shape == (split.reference_models, split.train_size)
    assert np.isin(found.reference, found.attacker_points).all()
    assert found.null.shape == (split.null_models, split.train_size)
    assert np.isin(found.null, found.filler).all()
    assert all(len(np.unique(row)) == split.train_size for row in found.null)
    assert found.overfitted_membership.shape == (split.overfitted_models, split.candidates)
    assert len(found.overfitted) == split.overfitted_models
    for own, row in zip(found.overfitted_membership, found.overfitted, strict=True):
        seen, times = np.unique(row, return_counts=True)  # half of the candidates and nothing else, all equally often
        assert seen.tolist() == sorted(found.candidates[own].tolist())
        assert len(seen) == split.candidates // 2
        assert len(set(times.tolist())) == 1
        assert times[0] >= REPEATS and len(row) >= split.train_size
    for candidate in found.overfitted_membership.T:
        assert candidate.sum() == split.overfitted_models // 2


def test_overfitted_models_change_nobody_elses_points() -> None:
    without, beside = design(), design(replace(SPLIT, overfitted_models=4))
    for name in ("candidates", "attacker_points", "filler", "target", "reference", "null", "membership"):
        assert np.array_equal(getattr(without, name), getattr(beside, name))
    more = design(replace(SPLIT, overfitted_models=6))
    assert np.array_equal(more.overfitted[:4], beside.overfitted)
    assert not np.array_equal(beside.overfitted_membership, beside.membership[:4])


def test_reference_models_draw_with_replacement_from_the_whole_pool() -> None:
    found = design(replace(SPLIT, reference_models=400, attacker_points=50))
    expected = 50 * (1 - (1 - 1 / 50) ** 25)  # different points in a bootstrap sample of 25 from 50: 19.8
    different = np.mean([len(np.unique(row)) for row in found.reference])
    assert abs(different - expected) < 0.3  # s.e. .08; without replacement 25
    times = np.bincount(np.searchsorted(np.sort(found.attacker_points), found.reference.ravel()), minlength=50)
    assert np.abs(times - 200).max() < 5 * 200**0.5


def test_candidates_pairs_and_filler_are_drawn_at_random() -> None:
    found = [design(seed=seed) for seed in range(150)]
    in_first = np.mean([one.membership[0] for one in found], axis=0)
    assert np.abs(in_first - 0.5).max() < 0.15  # s.e. .04
    same = np.mean([one.membership[0] == one.membership[2] for one in found])
    assert abs(same - 0.5) < 0.03  # targets of different pairs are independent (s.e. .009)
    assert abs(np.mean([np.isin(0, one.candidates) for one in found]) - 20 / 400) < 0.05
    place = [np.flatnonzero(np.isin(one.target[0], one.candidates)).mean() for one in found]
    assert abs(np.mean(place) - 12) < 0.4  # members first would give 4.5


def test_equal_seeds_give_equal_designs_and_other_seeds_others() -> None:
    first, second, third = design(), design(), design(seed=4)
    for name in ("candidates", "attacker_points", "filler", "rest", "target", "reference", "null", "membership"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert not np.array_equal(getattr(first, name), getattr(third, name)), name
    assert {first.target.dtype, first.reference.dtype, first.null.dtype, first.rest.dtype} == {np.dtype(np.int64)}


def test_growing_the_design_leaves_earlier_training_sets_as_they_were() -> None:
    before, after = design(), design(replace(SPLIT, targets=10, reference_models=9, null_models=5))
    np.testing.assert_array_equal(before.candidates, after.candidates)
    np.testing.assert_array_equal(before.membership, after.membership[:6])
    for name, count in (("target", 6), ("reference", 4), ("null", 3)):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name)[:count])


def test_filler_is_all_that_is_left_unless_given() -> None:
    found = design(replace(SPLIT, filler=None))
    assert len(found.filler) == POINTS - 250 - 20
    assert len(found.rest) == 0


@as_one(
    "change, says",
    [
        ({}, None),
        ({"attacker_points": 249}, "raise split.attacker_points to 250 or more"),
        ({"train_size": 10, "candidates": 20}, "use filler: a train_size of 20 or more"),
        ({"null_models": 0}, "split.null_models is 0"),
        ({"filler": 74}, "split.filler 75 points or more"),
    ],
)
def test_weak_designs_are_warned_of(change: dict[str, int], says: str | None) -> None:
    found = design(replace(SPLIT, **change)).warnings
    if says is None:
        assert found == ()
    else:
        (warning,) = found
        assert says in warning and "\n" not in warning


@as_one(
    "change, says",
    [
        ({"targets": 5}, "split.targets is 5; allowed: even"),
        ({"targets": 0}, "split.targets is 0"),
        ({"reference_models": 0}, "split.reference_models is 0"),
        ({"null_models": -1}, "split.null_models is -1"),
        ({"overfitted_models": 3}, "split.overfitted_models is 3; allowed: even"),
        ({"candidates": 19}, "split.candidates is 19; allowed: even"),
        ({"candidates": 0}, "split.candidates is 0"),
        ({"train_size": 9}, "split.train_size is 9, less than half of the 20 candidates; allowed: 10 or more"),
        ({"attacker_points": 24}, r"split.attacker_points is 24; allowed: split.train_size \(25\) or more"),
        (
            {"attacker_points": 381},
            "split.attacker_points is 381 and split.candidates 20, together more than the 400 points",
        ),
        ({"filler": 131}, "split.filler is 131; allowed: up to 130"),
        ({"filler": 24}, "split.filler is 24, but a null model draws 25 of it; give 25 or more"),
        ({"filler": 14, "null_models": 0}, "split.filler is 14, but a target draws 15 of it; give 15 or more"),
        (
            {"filler": None, "attacker_points": 360},
            "a null model draws 25 of it; lower split.attacker_points or split.train_size",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_their_field(change: dict[str, int], says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        design(replace(SPLIT, **change))
    assert "\n" not in str(caught.value)


def test_a_design_that_just_fits_is_accepted() -> None:
    snug = replace(SPLIT, attacker_points=25, filler=25)
    assert len(design(snug, ids=np.arange(70)).rest) == 0
    with pytest.raises(BadInput, match=r"split\.filler"):
        design(snug, ids=np.arange(69))


def test_a_point_named_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="name a point twice"):
        design(ids=np.r_[np.arange(POINTS), 0])


@pytest.mark.parametrize(("group", "word", "replace"), [("reference", "contrast", True), ("null", "fresh", False)])
def test_seeds_keep_the_words_of_the_first_results(group: str, word: str, replace: bool) -> None:
    """Other words in seeds are other training sets, and so other numbers under the same plan."""
    found = design()
    pool = found.attacker_points if group == "reference" else found.filler
    for index, own in enumerate(getattr(found, group)):
        rng = numpy_generator(derive_seed(3, f"membership/{word}", index))
        np.testing.assert_array_equal(own, rng.choice(pool, SPLIT.train_size, replace=replace))
    ids = np.arange(1000, 1030)
    rng = numpy_generator(derive_seed(1, f"other-side/{word}", 0))
    np.testing.assert_array_equal(
        other_side(ids, SPLIT.models, 12, seed=1)[group][0], rng.choice(ids, 12, replace=False)
    )


# The other side of the transfer


def test_students_of_all_groups_draw_from_one_pool_by_one_rule() -> None:
    ids = np.arange(1000, 1030)
    found = other_side(ids, replace(SPLIT, overfitted_models=2).models, 12, seed=1)
    assert {group: array.shape for group, array in found.items()} == {
        "target": (6, 12), "reference": (4, 12), "null": (3, 12), "overfitted": (2, 12)
    }  # fmt: skip
    rows = np.concatenate(list(found.values()))
    assert np.isin(rows, ids).all()
    assert all(len(np.unique(row)) == 12 for row in rows)
    assert len({tuple(sorted(row)) for row in rows.tolist()}) == 15
    for one, two in itertools.pairwise((found, other_side(ids, {"target": 9, "reference": 4, "null": 3}, 12, seed=1))):
        np.testing.assert_array_equal(one["target"], two["target"][:6])
        np.testing.assert_array_equal(one["null"], two["null"])
    many = other_side(ids, {"target": 500, "reference": 500}, 12, seed=2)
    assert many["null"].shape == (0, 12)
    for group in ("target", "reference"):
        share = np.bincount(many[group].ravel() - 1000, minlength=30) / 500
        assert np.abs(share - 12 / 30).max() < 0.1  # s.e. .022


def test_reference_teachers_never_see_a_candidate() -> None:
    found = design()
    assert not np.isin(found.reference, found.candidates).any()  # attack II: they train on the attacker's pool
    teachers = other_side(np.arange(POINTS), SPLIT.models, 300, seed=1, without=found.candidates)
    assert not any(np.isin(rows, found.candidates).any() for rows in teachers.values())


@pytest.mark.parametrize("size", [0, 31])
def test_an_other_side_that_is_too_small_is_refused(size: int) -> None:
    with pytest.raises(BadInput, match=rf"transfer\.train_size is {size}; allowed: 1 to 30"):
        other_side(np.arange(31), SPLIT.models, size, seed=1, without=np.array([4]))


def test_points_of_classes_split_a_data_set() -> None:
    labels = np.array([0, 1, 2, 3, 0, 2])
    assert points_of(labels, (0, 2)).tolist() == [0, 2, 4, 5]
    assert points_of(labels, (1, 3)).tolist() == [1, 3]
    with pytest.raises(BadInput, match=r"none: \[4\]"):
        points_of(labels, (1, 4))

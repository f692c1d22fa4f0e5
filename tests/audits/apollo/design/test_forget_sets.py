"""Forget sets of one form for targets and shadows: classes and named points, and candidates that labels cannot sort."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.apollo.design.partition import ForgetClasses, ForgetIds, Member, Partition, Split, make_partition
from audits.errors import BadInput
from tests.cases.families import as_one

CLASSES = 5
POINTS = 1200
LABELS = np.random.default_rng(1).integers(0, CLASSES, POINTS)
SPLIT = Split(
    targets=3,
    train_size=60,
    target_pool=180,
    shadow_pool=480,
    test_pool=300,
    forget=ForgetClasses((1, 3)),
    candidates_forget=6,
    candidates_unseen=7,
    shadows=8,
    offline_shadows=4,
)
HALF_OF_CLASSES = replace(SPLIT, forget=ForgetClasses((1, 3), 0.5), candidates_retained=4)
IDS = tuple(int(row) for label, count in ((2, 9), (4, 3)) for row in np.flatnonzero(label == LABELS)[:count])
NAMED = replace(SPLIT, forget=ForgetIds(IDS), candidates_forget=7, candidates_unseen=7)


def design(split: Split = SPLIT, seed: int = 0, labels: np.ndarray = LABELS) -> Partition:
    return make_partition(len(labels), split, seed, labels=labels)


def members(partition: Partition, role: str) -> list[Member]:
    return [member for member in partition.members if member.role == role]


def of_classes(ids: np.ndarray) -> np.ndarray:
    return ids[np.isin(LABELS[ids], (1, 3))]


@given(
    st.sets(st.integers(0, CLASSES - 1), min_size=1, max_size=3),
    st.sampled_from([0.5, 1.0]),
    st.integers(0, 2**32),
    st.integers(1, 2),
)
@settings(max_examples=8, deadline=None)
def test_all_models_forget_points_of_the_classes_only(classes: set[int], part: float, seed: int, per_set: int) -> None:
    split = replace(
        SPLIT,
        forget=ForgetClasses(tuple(classes), part),
        candidates_forget=2,
        candidates_unseen=2,
        targets_per_shadow_set=per_set,
    )
    partition = design(split, seed)
    for member in partition.members:
        own = member.train[np.isin(LABELS[member.train], list(classes))]
        assert len(np.unique(member.train)) == len(member.train) == split.train_size
        assert set(member.forget) <= set(own)
        if part == 1.0:
            assert set(member.forget) == set(own)
        served = [target for target in members(partition, "target") if target.shadow_set == member.shadow_set]
        if member.role != "target":
            assert len(member.forget) == round(float(np.mean([len(target.forget) for target in served])))
            shares = [np.isin(LABELS[target.train], list(classes)).sum() for target in served]
            assert len(own) == round(float(np.mean(shares)))
    for asked in partition.candidates:
        assert set(LABELS[asked.ids]) <= classes
        assert (np.bincount(asked.target)[np.unique(asked.target)] == 4).all()


def test_forgetting_classes_does_not_change_what_targets_train_on() -> None:
    by_class, by_fraction = design(), design(replace(SPLIT, forget=0.2))
    for one, two in zip(members(by_class, "target"), members(by_fraction, "target"), strict=True):
        np.testing.assert_array_equal(one.train, two.train)


def test_pools_and_halves_stay_disjoint_when_classes_are_forgotten() -> None:
    partition = design()
    asked = set(np.concatenate([entry.ids for entry in partition.candidates]).tolist())
    targets = {int(row) for member in members(partition, "target") for row in member.train}
    own = [
        {int(row) for member in partition.members if member.group == group for row in member.train} - asked
        for group in (1, 2)
    ]
    test = set(partition.test.tolist())
    assert not own[0] & own[1] and not (own[0] | own[1]) & (targets | test) and not test & (targets | asked)


def test_candidates_inside_a_shadow_are_balanced_and_forgotten_with_their_class() -> None:
    partition = design()
    for shadow_set, asked in enumerate(partition.candidates):
        for group in (1, 2):
            shadows = partition.select("shadow", shadow_set, group)
            inside = partition.membership(shadows, asked.ids)
            forgotten = np.stack([np.isin(asked.ids, shadow.forget) for shadow in shadows])
            assert (inside.sum(0) == len(shadows) // 2).all()
            np.testing.assert_array_equal(inside, forgotten)


def test_retained_candidates_have_the_classes_too() -> None:
    partition = design(HALF_OF_CLASSES)
    for member in partition.members:
        assert len(member.forget) < len(of_classes(member.train))
    for asked in partition.candidates:
        assert set(LABELS[asked.ids[asked.retained]]) <= {1, 3}
        assert asked.retained.sum() == 4


def test_named_points_are_in_every_target_and_nowhere_else() -> None:
    partition = design(NAMED)
    for target in members(partition, "target"):
        assert set(target.forget) == set(IDS) <= set(target.train)
        assert len(np.unique(target.train)) == len(target.train) == NAMED.train_size
    rest = np.concatenate([target.retain for target in members(partition, "target")])
    assert len(np.unique(rest)) == len(rest)  # targets share the named points only
    asked = {int(row) for entry in partition.candidates for row in entry.ids[entry.forgotten]}
    assert asked <= set(IDS)
    for shadow in (*members(partition, "shadow"), *members(partition, "offline")):
        allowed = asked if shadow.role == "shadow" else set()
        assert set(shadow.train.tolist()) & set(IDS) <= allowed
        assert len(shadow.forget) == len(IDS)
    assert not set(partition.test.tolist()) & set(IDS)


def test_never_seen_candidates_have_the_labels_of_the_named_ones() -> None:
    partition = design(NAMED)
    for asked in partition.candidates:
        forgotten, unseen = (Counter(LABELS[asked.ids[mask]].tolist()) for mask in (asked.forgotten, asked.unseen))
        assert forgotten == unseen
    unseen = np.concatenate([asked.ids[asked.unseen] for asked in partition.candidates])
    assert len(np.unique(unseen)) == len(unseen)


def test_offline_shadows_forget_points_with_the_labels_of_the_named_ones() -> None:
    for shadow in members(design(NAMED), "offline"):
        assert Counter(LABELS[shadow.forget].tolist()) == Counter(LABELS[list(IDS)].tolist())


def test_which_named_points_are_asked_about_differs_between_targets() -> None:
    asked = design(NAMED).candidates
    assert len({frozenset(entry.ids[entry.forgotten].tolist()) for entry in asked}) > 1


def test_several_targets_with_the_same_points_are_warned_of() -> None:
    assert any("not independent over points" in line for line in design(NAMED).warnings)
    alone = replace(NAMED, targets=1)
    assert not any("not independent over points" in line for line in design(alone).warnings)


@pytest.mark.parametrize("forget", [ForgetClasses((1, 3)), ForgetIds(IDS)], ids=["classes", "ids"])
def test_equal_arguments_give_equal_designs(forget: ForgetClasses | ForgetIds) -> None:
    split = replace(SPLIT, forget=forget)
    for one, two in zip(design(split).members, design(split).members, strict=True):
        np.testing.assert_array_equal(one.train, two.train)
        np.testing.assert_array_equal(one.forget, two.forget)
    assert not np.array_equal(design(split, 1).members[0].train, design(split, 2).members[0].train)


@as_one(
    "change, says",
    [
        ({"candidates_forget": 40}, "a target has only [0-9]+ points of the classes"),
        ({"candidates_unseen": 60}, "split.test_pool: .* 180 are asked about; raise split.test_pool to about"),
        ({"candidates_forget": 3, "candidates_unseen": 60, "test_pool": 500}, "a shadow trains on"),
        ({"shadow_pool": 120, "forget": ForgetClasses((1, 3))}, "a half holds [0-9]+ points of the classes"),
        ({"forget": ForgetClasses((7,))}, "has 7, of which the data has no point"),
        ({"forget": ForgetClasses(("cat",))}, "'cat'"),
        ({"forget": ForgetClasses((1, 3), 1.5)}, "fraction is 1.5"),
        ({"forget": ForgetClasses(tuple(range(CLASSES)))}, "leave a class to retain"),
        ({"candidates_retained": 1}, "no target retains a point"),
        ({"forget": ForgetClasses((1, 3), 0.9), "candidates_retained": 5}, "retains only|forgets"),
        ({"forget": ForgetIds((1, 1, 2))}, "twice"),
        ({"forget": ForgetIds((1, POINTS))}, f"has {POINTS}"),
        ({"forget": ForgetIds(tuple(range(60)))}, "60 ids"),
        ({"forget": ForgetIds(tuple(range(5)))}, "candidates.forget is 6; allowed: 1 to 5"),
    ],
)
def test_what_cannot_be_forgotten_is_refused_in_one_line(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        design(replace(SPLIT, **change))  # type: ignore[arg-type]  # every case changes fields of its own
    assert "\n" not in str(caught.value)


def test_a_pool_without_the_labels_of_the_named_points_is_refused() -> None:
    labels = LABELS.copy()
    labels[labels == 2] = 1
    labels[list(IDS)] = 2
    with pytest.raises(BadInput, match=r"split\.test_pool"):
        design(NAMED, labels=labels)


@pytest.mark.parametrize("forget", [ForgetClasses((1, 3)), ForgetIds(IDS)], ids=["classes", "ids"])
def test_labels_are_needed_and_must_fit(forget: ForgetClasses | ForgetIds) -> None:
    for labels in (None, LABELS[:-1]):
        with pytest.raises(BadInput, match="labels of all 1200 points"):
            make_partition(POINTS, replace(SPLIT, forget=forget), 0, labels=labels)


def test_names_of_classes_become_indices() -> None:
    names = ("dog", "cat", "7")
    assert ForgetClasses(("cat", 0, "7"), 0.5).indexed(names) == ForgetClasses((1, 0, 2), 0.5)
    for entry in ("cow", 3, -1):
        with pytest.raises(BadInput, match="0 to 2, or a name: dog, cat, 7"):
            ForgetClasses((entry,)).indexed(names)

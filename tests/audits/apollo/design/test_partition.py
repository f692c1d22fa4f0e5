"""The design keeps its promises: disjoint pools and halves, balanced membership, caches that survive growth."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from audits.apollo.design.partition import Partition, Split, make_partition
from orchestrator.kinds import load_plan
from tests.audits.apollo.design.small_design import SPLIT, asked_ids, design, drawn


def digest_of(partition: Partition) -> str:
    whole = hashlib.sha256()
    for member in partition.members:
        whole.update(f"{member.name} {member.role} {member.shadow_set} {member.group} {member.index}\n".encode())
        whole.update(member.train.tobytes())
        whole.update(member.forget.tobytes())
    for asked in partition.candidates:
        for column in (asked.ids, asked.target, asked.forgotten):
            whole.update(column.tobytes())
    whole.update(partition.test.tobytes())
    whole.update("\n".join(partition.warnings).encode())
    return whole.hexdigest()


@st.composite
def splits(draw: st.DrawFn) -> Split:
    train_size = draw(st.integers(20, 60))
    forget = draw(st.floats(0.1, 0.5))
    forgets = round(forget * train_size)
    per_set = draw(st.integers(1, 3))
    most = 2 * forgets // per_set
    assume(most >= 2)
    candidates_forget = draw(st.integers(1, min(forgets, most - 1)))
    candidates_unseen = draw(st.integers(1, most - candidates_forget))
    targets = draw(st.integers(1, 5))
    return Split(
        targets=targets,
        train_size=train_size,
        target_pool=draw(st.integers(train_size, 6 * train_size)),
        shadow_pool=draw(st.integers(2 * train_size, 9 * train_size)),
        test_pool=targets * candidates_unseen + draw(st.integers(1, 20)),
        forget=forget,
        candidates_forget=candidates_forget,
        candidates_unseen=candidates_unseen,
        shadows=4 * draw(st.integers(1, 4)),
        offline_shadows=2 * draw(st.integers(1, 3)),
        targets_per_shadow_set=per_set,
    )


@given(splits(), st.integers(0, 2**32))
@settings(max_examples=15)
def test_every_design_is_disjoint_balanced_and_of_the_right_sizes(split: Split, seed: int) -> None:
    partition = make_partition(split.points, split, seed)
    for member in partition.members:
        assert len(np.unique(member.train)) == len(member.train) == split.train_size
        assert len(np.unique(member.forget)) == len(member.forget) == split.forget_count
        assert np.isin(member.forget, member.train).all()
        assert sorted([*member.retain, *member.forget]) == sorted(member.train)
    own_data = drawn(partition, "shadow") | drawn(partition, "offline")
    assert not drawn(partition, "target") & (own_data - asked_ids(partition))
    for shadow_set, asked in enumerate(partition.candidates):
        everyone = np.unique(asked.ids)
        for group in (1, 2):
            shadows = partition.select("shadow", shadow_set, group)
            inside = partition.membership(shadows, everyone)
            assert len(shadows) == split.shadows // 2
            assert (inside.sum(0) == len(shadows) // 2).all()
            assert set(inside.sum(1)) <= {len(everyone) // 2, len(everyone) - len(everyone) // 2}
            for shadow, row in zip(shadows, inside, strict=True):
                assert set(everyone[row]) <= set(shadow.forget)


@pytest.mark.parametrize(
    ("split", "points", "seed", "known"),
    [
        (load_plan().split.design(), 70000, 0, "498b791ff13338e6939d5909f92593cf083e3845bbdb4cf1afa678030afd0b29"),
        (SPLIT, 437, 3, "5d18f4a9dab115a43186e9d480708ddf1eb7aeca2a072f3dae0c339f1de54659"),
        (
            replace(SPLIT, targets=6, target_pool=150, shadow_pool=150, candidates_forget=3),
            437,
            3,
            "d1ef0c4f3d24c5125ef3f30e6c4a500ea15e6c76e9b5720160cb3149b3e29dfc",
        ),
    ],
    ids=["the embedded default", "shared shadow sets", "overlapping targets"],
)
def test_designs_of_earlier_versions_are_drawn_bit_for_bit(split: Split, points: int, seed: int, known: str) -> None:
    labels = np.zeros(points, np.int64)
    assert digest_of(make_partition(points, split, seed)) == known
    assert digest_of(make_partition(points, split, seed, labels=labels)) == known


def test_the_three_pools_are_disjoint() -> None:
    partition = design()
    unseen = {int(i) for asked in partition.candidates for i in asked.ids[~asked.forgotten]}
    targets = drawn(partition, "target")
    own = (drawn(partition, "shadow") | drawn(partition, "offline")) - asked_ids(partition)
    test = set(partition.test.tolist())
    assert not targets & own and not targets & (unseen | test) and not own & (unseen | test) and not unseen & test


def test_the_two_halves_of_the_shadow_pool_share_candidates_only() -> None:
    partition = design()
    first = drawn(partition, "shadow", 1) | drawn(partition, "offline", 1)
    second = drawn(partition, "shadow", 2) | drawn(partition, "offline", 2)
    assert first & second <= asked_ids(partition)
    assert first & second  # the candidates themselves are in both


def test_offline_shadows_never_train_on_a_candidate() -> None:
    partition = design()
    assert not drawn(partition, "offline") & asked_ids(partition)


def test_candidates_of_a_target_are_points_it_forgot_and_points_nobody_saw() -> None:
    partition = design()
    targets = {member.index: member for member in partition.members if member.role == "target"}
    for shadow_set, asked in enumerate(partition.candidates):
        for target in np.unique(asked.target):
            own = asked.target == target
            assert targets[target].shadow_set == shadow_set
            assert asked.forgotten[own].sum() == SPLIT.candidates_forget
            assert (~asked.forgotten[own]).sum() == SPLIT.candidates_unseen
            assert np.isin(asked.ids[own & asked.forgotten], targets[target].forget).all()
            assert not set(asked.ids[own & ~asked.forgotten].tolist()) & drawn(partition, "target")


def test_never_seen_candidates_of_all_targets_differ() -> None:
    partition = design()
    unseen = np.concatenate([asked.ids[~asked.forgotten] for asked in partition.candidates])
    assert len(np.unique(unseen)) == len(unseen) == SPLIT.targets * SPLIT.candidates_unseen


def test_order_of_the_candidates_says_nothing_about_the_truth() -> None:
    split = replace(SPLIT, targets=1, targets_per_shadow_set=1, candidates_forget=8, candidates_unseen=8)
    positions = [np.flatnonzero(design(split, seed).candidates[0].forgotten).mean() for seed in range(80)]
    assert abs(np.mean(positions) - 7.5) < 0.5  # s.e. .13; unshuffled lists would give 3.5 or 11.5


def test_shadows_of_a_group_share_their_half_but_not_the_draw() -> None:
    shadows = design().select("shadow", 0, 1)
    own = [frozenset(member.train.tolist()) for member in shadows]
    assert len(set(own)) == len(own)


def test_equal_seeds_give_equal_designs_and_other_seeds_others() -> None:
    first, second, third = design(seed=3), design(seed=3), design(seed=4)
    for one, two in zip(first.members, second.members, strict=True):
        assert one.name == two.name
        np.testing.assert_array_equal(one.train, two.train)
        np.testing.assert_array_equal(one.forget, two.forget)
    for one, two in zip(first.candidates, second.candidates, strict=True):
        np.testing.assert_array_equal(one.ids, two.ids)
        np.testing.assert_array_equal(one.forgotten, two.forgotten)
    assert not np.array_equal(first.members[0].train, third.members[0].train)


@pytest.mark.parametrize(
    "grown",
    [
        replace(SPLIT, shadows=16),
        replace(SPLIT, offline_shadows=8),
        replace(SPLIT, targets=2),  # the other way round
        replace(SPLIT, shadows=16, offline_shadows=8),
    ],
    ids=["shadows", "offline shadows", "fewer targets", "both"],
)
def test_growing_the_design_leaves_earlier_training_sets_as_they_were(grown: Split) -> None:
    before = {member.name: member for member in design().members}
    after = {member.name: member for member in design(grown).members}
    common = before.keys() & after.keys()
    assert len(common) == min(len(before), len(after))
    for name in common:
        np.testing.assert_array_equal(before[name].train, after[name].train)
        np.testing.assert_array_equal(before[name].forget, after[name].forget)


def test_targets_that_no_longer_fit_side_by_side_leave_the_earlier_ones_as_they_were() -> None:
    before, after = design(), design(replace(SPLIT, targets=6))
    for one, two in zip(before.members[:4], after.members[:4], strict=True):
        np.testing.assert_array_equal(one.train, two.train)
        np.testing.assert_array_equal(one.forget, two.forget)


def test_targets_have_disjoint_training_sets_while_the_pool_lasts() -> None:
    targets = [member for member in design().members if member.role == "target"]
    assert len(np.unique(np.concatenate([target.train for target in targets]))) == 4 * SPLIT.train_size


@pytest.mark.parametrize("m", [4, 64])
def test_few_and_many_shadows_are_balanced(m: int) -> None:
    partition = design(replace(SPLIT, shadows=m))
    for shadow_set, asked in enumerate(partition.candidates):
        inside = partition.membership(partition.select("shadow", shadow_set), asked.ids)
        assert (inside.sum(0) == m // 2).all()

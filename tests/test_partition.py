"""The design keeps its promises: disjoint pools and halves, balanced membership, caches that survive growth."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from audits.data.partition import (
    Member,
    Partition,
    Split,
    make_partition,
    overlap,
    overlap_warnings,
    shared_half_warnings,
)
from audits.errors import BadInput
from orchestrator.plan import load_plan

SPLIT = Split(
    targets=4,
    train_size=40,
    target_pool=160,
    shadow_pool=200,
    test_pool=60,
    forget=0.2,
    candidates_forget=4,
    candidates_unseen=4,
    shadows=8,
    offline_shadows=4,
    targets_per_shadow_set=2,
)


def design(split: Split = SPLIT, seed: int = 3) -> Partition:
    return make_partition(split.points + 17, split, seed)


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


def drawn(partition: Partition, role: str, group: int | None = None) -> set[int]:
    chosen = [m for m in partition.members if m.role == role and (group is None or m.group == group)]
    return set(np.concatenate([member.train for member in chosen]).tolist())


def asked_ids(partition: Partition) -> set[int]:
    return set(np.concatenate([asked.ids for asked in partition.candidates]).tolist())


def member_of(name: str, train: list[int]) -> Member:
    return Member(name, "shadow", 0, 1, 0, np.array(train, dtype=np.int64), np.array(train[:1], dtype=np.int64))


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
@settings(max_examples=60)
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
    positions = [np.flatnonzero(design(split, seed).candidates[0].forgotten).mean() for seed in range(200)]
    assert abs(np.mean(positions) - 7.5) < 0.3  # s.e. .08; unshuffled lists would give 3.5 or 11.5


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


def test_overlap_is_the_share_of_a_half_that_a_shadow_trains_on() -> None:
    assert overlap(replace(SPLIT, train_size=40, shadow_pool=160)) == 0.5


def test_half_an_overlap_is_fine_and_more_is_warned_of() -> None:
    assert overlap_warnings(replace(SPLIT, shadow_pool=160)) == ()
    (warning,) = overlap_warnings(replace(SPLIT, shadow_pool=158))
    assert "shadow_pool of at least 160" in warning
    assert design(replace(SPLIT, shadow_pool=158)).warnings == (warning,)


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


@pytest.mark.parametrize(
    ("change", "says"),
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


@pytest.mark.parametrize(
    ("change", "says"),
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


@pytest.mark.parametrize("m", [4, 64])
def test_few_and_many_shadows_are_balanced(m: int) -> None:
    partition = design(replace(SPLIT, shadows=m))
    for shadow_set, asked in enumerate(partition.candidates):
        inside = partition.membership(partition.select("shadow", shadow_set), asked.ids)
        assert (inside.sum(0) == m // 2).all()

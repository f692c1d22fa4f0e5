"""The design around a given model: whose points are whose, and what the given points do not suffice for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.apollo.design.given import Around, given_partition, given_split
from audits.apollo.design.partition import Partition, Split
from audits.errors import BadInput
from tests.cases.families import as_one

POINTS = 1000
ORDER = np.random.default_rng(1).permutation(POINTS)
MEMBERS, FORGET = np.sort(ORDER[:80]), np.sort(ORDER[:20])
GIVEN = {"members": MEMBERS, "forget": FORGET, "non_members": np.sort(ORDER[80:])}
PLAN = Split(
    targets=8,
    train_size=80,
    target_pool=4000,
    shadow_pool=400,
    test_pool=100,
    forget=0.1,
    candidates_forget=15,
    candidates_unseen=20,
    shadows=8,
    offline_shadows=4,
    candidates_retained=0,
)


def design(plan: Split = PLAN, around: Around = "non_members", **given: np.ndarray) -> Partition:
    """Return the design of ``plan`` around the given points."""
    points = GIVEN | given
    return given_partition(given_split(plan, points, around), 3, points, around)


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, candidates_retained=10)])
def test_candidates_are_what_the_target_knows_them_as(plan: Split) -> None:
    partition = design(plan)
    (asked,), target = partition.candidates, partition.members[0]
    assert asked.forgotten.sum() == 15 and np.isin(asked.ids[asked.forgotten], FORGET).all()
    assert asked.unseen.sum() == 20 and not np.isin(asked.ids[asked.unseen], MEMBERS).any()
    assert asked.retained.sum() == plan.candidates_retained
    assert np.isin(asked.ids[asked.retained], np.setdiff1d(MEMBERS, FORGET)).all()
    assert sorted(target.train) == MEMBERS.tolist() and sorted(target.forget) == FORGET.tolist()


def test_shadows_share_candidates_alone_with_the_target_and_with_the_other_half() -> None:
    partition = design()
    asked = partition.candidates[0].ids
    own = [np.setdiff1d(np.concatenate([member.train for member in partition.members if member.group == group]), asked)
           for group in (1, 2)]  # fmt: skip
    everywhere = np.concatenate([*own, partition.test, MEMBERS, asked[partition.candidates[0].unseen]])
    assert len(np.unique(everywhere)) == len(everywhere)
    for member in partition.members[1:]:
        assert len(member.train) == 80 and len(member.forget) == 20  # as many, of as many, as the target
        inside = np.isin(asked, member.train)
        assert inside.sum() in ((17, 18) if member.role == "shadow" else (0,))
        assert np.isin(asked[inside], member.forget).all()


def test_every_candidate_is_in_half_of_the_shadows_of_each_half_whatever_it_was() -> None:
    partition = design()
    for group in (1, 2):
        inside = partition.membership(partition.select("shadow", 0, group), partition.candidates[0].ids)
        assert (inside.sum(0) == 2).all()


def test_only_known_non_members_are_used() -> None:
    few = np.sort(ORDER[400:])
    partition = design(non_members=few)
    used = np.concatenate([*(member.train for member in partition.members[1:]), partition.test])
    assert np.isin(used, np.concatenate([few, FORGET])).all()


def test_a_smaller_forget_set_is_asked_about_as_a_whole() -> None:
    partition = design(replace(PLAN, candidates_unseen=6), forget=FORGET[:8])
    (asked,) = partition.candidates
    assert sorted(asked.ids[asked.forgotten]) == FORGET[:8].tolist()
    assert any("only 8 forgotten points" in line for line in partition.warnings)


def test_shadows_of_another_size_are_warned_of() -> None:
    assert not [line for line in design().warnings if "split.train_size" in line]
    (line,) = (line for line in design(replace(PLAN, train_size=100)).warnings if "would match" in line)
    assert "trained on 80 points" in line and "on 100" in line


@as_one(
    "plan, given, said",
    [
        (PLAN, {"non_members": ORDER[80:560]}, r"480 points are known as non-members.* 500; lower split.shadow_pool"),
        (replace(PLAN, candidates_unseen=40), {}, r"forgets 28 of the 55 candidates.*forgets only 20; ask about 40"),
        (replace(PLAN, candidates_retained=61), {}, "the target retains 60 points"),
        (replace(PLAN, train_size=20), {"forget": FORGET[:2]}, r"2 of 80 members.* would forget 0"),
    ],
)
def test_too_few_points_are_refused_with_numbers(plan: Split, given: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        design(plan, **given)


ALIKE = replace(PLAN, candidates_unseen=15, shadow_pool=40)


def test_around_the_members_the_target_is_one_of_its_shadows() -> None:
    partition = design(ALIKE, "retained")
    target, asked = partition.members[0], partition.candidates[0].ids
    common = np.setdiff1d(MEMBERS, asked)
    for member in partition.members:
        assert len(member.train) == 80 and len(member.forget) == 20
        inside = np.isin(asked, member.train)
        assert inside.sum() == (0 if member.role == "offline" else 15)
        assert np.isin(common, member.train).all() and np.isin(np.setdiff1d(FORGET, asked), member.forget).all()
        assert np.isin(asked[inside], member.forget).all()
        assert len(np.setdiff1d(member.train, np.append(common, asked))) == (15 if member.role == "offline" else 0)
    assert sorted(target.train) == sorted([*common, *asked[partition.candidates[0].forgotten]])
    used = [np.setdiff1d(member.train, np.append(MEMBERS, asked)) for member in partition.members]
    assert not np.isin(np.concatenate(used), partition.test).any()


def test_around_the_members_groups_of_unlike_size_are_warned_of_and_few_non_members_refused() -> None:
    assert not design(ALIKE, "retained").warnings
    (line,) = design(replace(ALIKE, candidates_unseen=25), "retained").warnings
    assert "trains on 85 points" in line and "the target on 80" in line
    few = ORDER[80:200]
    with pytest.raises(BadInput, match=r"120 points are known as non-members.*need 130 of them"):
        design(ALIKE, "retained", non_members=few)


def test_around_the_members_retained_candidates_are_kept_by_a_quarter() -> None:
    partition = design(replace(ALIKE, candidates_retained=10), "retained")
    asked = partition.candidates[0]
    kept = asked.ids[asked.retained]
    for group in (1, 2):
        shadows = partition.select("shadow", 0, group)
        assert (partition.membership(shadows, kept).sum(0) == 2).all()
        assert (np.stack([np.isin(kept, one.forget) for one in shadows]).sum(0) == 1).all()

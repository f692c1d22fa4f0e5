"""Designs of whole groups: no group on two sides of a border, sizes as without groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.apollo.design.partition import ForgetIds, Partition, Split, make_partition
from audits.arrays import Ids
from audits.errors import BadInput
from tests.audits.apollo.design.small_design import SPLIT

POINTS = 900
GROUPS = np.random.default_rng(0).permutation(np.repeat(np.arange(POINTS), np.arange(POINTS) % 4 + 1)[:POINTS])


def grouped(split: Split, seed: int = 3, groups: Ids = GROUPS) -> Partition:
    return make_partition(POINTS, split, seed, groups=groups)


def disjoint(*parts: Ids) -> bool:
    """Do the parts share no group?"""
    names = [set(GROUPS[part].tolist()) for part in parts]
    return sum(map(len, names)) == len(set().union(*names))


SPLITS = {
    "as many targets as the pool holds": SPLIT,
    "retained candidates": replace(SPLIT, candidates_retained=4),
    "targets that share points": replace(SPLIT, target_pool=100),
}


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_group_is_on_two_sides_of_a_border(name: str, seed: int) -> None:
    split = SPLITS[name]
    found = grouped(split, seed)
    targets = [member for member in found.members if member.role == "target"]
    for member in found.members:
        assert len(np.unique(member.train)) == len(member.train) == split.train_size
        if member.role != "shadow":  # the candidates of a shadow may be more than it forgets otherwise
            assert len(member.forget) == split.forget_count
        asked = np.concatenate([each.ids for each in found.candidates])
        kept = member.retain if member.role != "shadow" else np.setdiff1d(member.retain, asked)
        assert disjoint(member.forget, kept)
    if split.target_pool >= split.targets * split.train_size:
        assert disjoint(*(target.train for target in targets))
    unseen = [asked.ids[asked.unseen & (asked.target == t)] for t in range(4) for asked in [found.candidates[t // 2]]]
    halves = [np.empty(0, np.int64), np.empty(0, np.int64)]
    for shadow_set, asked in enumerate(found.candidates):
        for group in (1, 2):
            for role in ("shadow", "offline"):
                for member in found.select(role, shadow_set, group):  # type: ignore[arg-type]  # two roles
                    halves[group - 1] = np.union1d(halves[group - 1], np.setdiff1d(member.train, asked.ids))
    assert disjoint(np.concatenate([target.train for target in targets]), *halves, *unseen, found.test)


@pytest.mark.parametrize("name", ["as many targets as the pool holds", "retained candidates"])
def test_shadows_are_balanced_and_hold_all_candidates_of_a_group_or_none(name: str) -> None:
    split = SPLITS[name]
    found = grouped(split)
    for shadow_set, asked in enumerate(found.candidates):
        for group in (1, 2):
            shadows = found.select("shadow", shadow_set, group)
            inside = found.membership(shadows, asked.ids)
            assert (inside.sum(0) == len(shadows) // 2).all()
            forgotten = np.stack([np.isin(asked.ids, shadow.forget) for shadow in shadows])
            times = len(shadows) // (4 if split.candidates_retained else 2)
            assert (forgotten.sum(0) == times).all()
            for name_of_group in np.unique(GROUPS[asked.ids]):
                own = GROUPS[asked.ids] == name_of_group
                for table in (inside, forgotten):
                    assert (table[:, own].all(1) | ~table[:, own].any(1)).all()


def test_retained_candidates_are_retained_and_forgotten_ones_forgotten() -> None:
    found = grouped(SPLITS["retained candidates"])
    for asked in found.candidates:
        for place, point in enumerate(asked.ids):
            target = found.members[asked.target[place]]
            assert (point in target.forget) == asked.forgotten[place]
            assert (point in target.retain) == asked.retained[place]
        for target in found.members[:4]:
            kept = asked.ids[asked.retained & (asked.target == target.index)]
            assert disjoint(kept, np.setdiff1d(target.retain, kept))


def test_designs_that_cut_through_groups_are_refused() -> None:
    for change, says in (
        ({"forget": ForgetIds((1, 2, 3, 4, 5, 6, 7, 8))}, "split.forget names classes or ids"),
        ({"audited": "memorised"}, "split.points is memorised, which chooses points one by one"),
        ({"candidates_unseen": 3}, r"a group has 4 points, more than split\.candidates\.unseen holds \(3 points\)"),
    ):
        with pytest.raises(BadInput, match=says):
            grouped(replace(SPLIT, **change))  # type: ignore[arg-type]  # fields of its own

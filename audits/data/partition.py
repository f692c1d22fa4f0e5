"""Who trains on what: pools, targets, shadow halves, candidates and forget sets, all as index sets.

Pools are disjoint: (a) targets train on it, (b) the attacker's own data in two disjoint halves, (c) points that no
target ever sees. A *shadow set* serves one or more targets: its online shadows train on a half of (b) plus half of
the candidates of those targets, its offline shadows on a half of (b) only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator

Ids = NDArray[np.int64]
Role = Literal["target", "shadow", "offline"]


@dataclass(frozen=True)
class Split:
    """Sizes of the design; counts of points unless said otherwise.

    ``targets`` models of ``train_size`` points from ``target_pool``; each forgets the fraction ``forget``, of which
    ``candidates_forget`` points are asked about, beside ``candidates_unseen`` points of ``test_pool``. ``shadows`` (m)
    and ``offline_shadows`` count models per shadow set, half of them on each half of ``shadow_pool``.
    """

    targets: int
    train_size: int
    target_pool: int
    shadow_pool: int
    test_pool: int
    forget: float
    candidates_forget: int
    candidates_unseen: int
    shadows: int
    offline_shadows: int
    targets_per_shadow_set: int = 1

    @property
    def forget_count(self) -> int:
        """Points that each model forgets."""
        return round(self.forget * self.train_size)

    @property
    def shadow_sets(self) -> int:
        """Shadow sets that the targets need."""
        return -(-self.targets // self.targets_per_shadow_set)

    @property
    def points(self) -> int:
        """Points that the three pools need."""
        return self.target_pool + self.shadow_pool + self.test_pool


@dataclass(frozen=True)
class Member:
    """One model of the population: what it trains on and what it is later asked to forget (a subset)."""

    name: str
    role: Role
    shadow_set: int
    group: int
    index: int
    train: Ids
    forget: Ids

    @property
    def retain(self) -> Ids:
        """Training points that stay, in training order."""
        return self.train[~np.isin(self.train, self.forget)]


@dataclass(frozen=True)
class Candidates:
    """The points asked about in one shadow set, in the order of every table.

    ``ids``: (K,) point ids; ``target``: (K,) the target that each point belongs to; ``forgotten``: (K,) bool, the
    truth: in that target's forget set, or never seen by it. Attacks never read ``forgotten``.
    """

    ids: Ids
    target: Ids
    forgotten: NDArray[np.bool_]


@dataclass(frozen=True)
class Partition:
    """The whole design. ``members`` lists targets, then per shadow set the shadows and the offline shadows."""

    split: Split
    members: tuple[Member, ...]
    candidates: tuple[Candidates, ...]
    test: Ids
    warnings: tuple[str, ...]

    def select(self, role: Role, shadow_set: int, group: int | None = None) -> tuple[Member, ...]:
        """Return the members of ``role`` in a shadow set, in order; ``group`` 1 or 2 restricts to one half."""
        return tuple(
            member
            for member in self.members
            if member.role == role and member.shadow_set == shadow_set and (group is None or member.group == group)
        )

    def membership(self, members: tuple[Member, ...], ids: Ids) -> NDArray[np.bool_]:
        """Return the membership matrix (models, points): was the point in the model's training set?"""
        return np.stack([np.isin(ids, member.train) for member in members])


def make_partition(points: int, split: Split, seed: int) -> Partition:
    """Return the design for a data set of ``points`` points. Equal arguments give equal index sets.

    Raises ``BadInput`` when the pools are too small for the design.
    """
    check_split(points, split)
    order = numpy_generator(derive_seed(seed, "pools")).permutation(points).astype(np.int64)
    target_pool, shadow_pool, test_pool = np.split(
        order[: split.points], [split.target_pool, split.target_pool + split.shadow_pool]
    )
    halves = (shadow_pool[: len(shadow_pool) // 2], shadow_pool[len(shadow_pool) // 2 :])
    unseen_count = split.targets * split.candidates_unseen
    unseen, test = test_pool[:unseen_count], test_pool[unseen_count:]
    targets = draw_targets(target_pool, split, seed)
    members: list[Member] = list(targets)
    candidates: list[Candidates] = []
    warnings = list(overlap_warnings(split))
    for shadow_set in range(split.shadow_sets):
        own = [target for target in targets if target.shadow_set == shadow_set]
        asked = draw_candidates(own, unseen, split, seed)
        candidates.append(asked)
        shadows = draw_shadows(asked, halves, split, shadow_set, seed)
        first, second = (tuple(shadow for shadow in shadows if shadow.group == group) for group in (1, 2))
        warnings += shared_half_warnings((first, second), asked.ids)
        members += [*shadows, *draw_offline_shadows(halves, split, shadow_set, seed)]
    return Partition(split, tuple(members), tuple(candidates), test, tuple(dict.fromkeys(warnings)))


def draw_targets(pool: Ids, split: Split, seed: int) -> list[Member]:
    """Return the targets; their training sets are disjoint as long as the pool lasts, then random draws."""
    targets = []
    for index in range(split.targets):
        rng = numpy_generator(derive_seed(seed, "target", index))
        if (index + 1) * split.train_size <= len(pool):
            train = pool[index * split.train_size : (index + 1) * split.train_size]
        else:
            train = rng.choice(pool, split.train_size, replace=False)
        forget = rng.choice(train, split.forget_count, replace=False)
        shadow_set = index // split.targets_per_shadow_set
        targets.append(Member(f"target-{index:03d}", "target", shadow_set, 0, index, train, forget))
    return targets


def draw_candidates(targets: list[Member], unseen: Ids, split: Split, seed: int) -> Candidates:
    """Return the candidates of one shadow set: forgotten and never-seen points of each of its targets, shuffled."""
    ids, owner, forgotten = [], [], []
    for target in targets:
        forgets = target.forget[: split.candidates_forget]
        start = target.index * split.candidates_unseen
        never = unseen[start : start + split.candidates_unseen]
        ids += [forgets, never]
        owner += [np.full(len(forgets) + len(never), target.index, np.int64)]
        forgotten += [np.ones(len(forgets), bool), np.zeros(len(never), bool)]
    order = numpy_generator(derive_seed(seed, "candidates", targets[0].shadow_set)).permutation(sum(map(len, ids)))
    return Candidates(np.concatenate(ids)[order], np.concatenate(owner)[order], np.concatenate(forgotten)[order])


def draw_shadows(asked: Candidates, halves: tuple[Ids, Ids], split: Split, shadow_set: int, seed: int) -> list[Member]:
    """Return the online shadows: half of the candidates each, in complementary pairs, so the design is balanced.

    Within each half of the pool every candidate is in exactly half of the shadows. The rest of a training set comes
    from the half; the forget set is the shadow's candidates, filled up to the target's forget count.
    """
    shadows = []
    unique = np.unique(asked.ids)
    for group, half in enumerate(halves, start=1):
        for index in range(split.shadows // 2):
            pair = numpy_generator(derive_seed(seed, "pair", shadow_set, group, index // 2)).permutation(unique)
            middle = len(pair) // 2
            inside = np.sort(pair[:middle] if index % 2 == 0 else pair[middle:])
            rng = numpy_generator(derive_seed(seed, "shadow", shadow_set, group, index))
            own = rng.choice(half, split.train_size - len(inside), replace=False)
            forget = np.concatenate([inside, own[: max(0, split.forget_count - len(inside))]])
            train = rng.permutation(np.concatenate([inside, own]))
            name = f"set-{shadow_set:03d}-shadow-{group}-{index:03d}"
            shadows.append(Member(name, "shadow", shadow_set, group, index, train, forget))
    return shadows


def draw_offline_shadows(halves: tuple[Ids, Ids], split: Split, shadow_set: int, seed: int) -> list[Member]:
    """Return the offline shadows: ``train_size`` points of one half of (b), a random part of which is forgotten."""
    shadows = []
    for group, half in enumerate(halves, start=1):
        for index in range(split.offline_shadows // 2):
            rng = numpy_generator(derive_seed(seed, "offline", shadow_set, group, index))
            train = rng.choice(half, split.train_size, replace=False)
            forget = rng.choice(train, split.forget_count, replace=False)
            name = f"set-{shadow_set:03d}-offline-{group}-{index:03d}"
            shadows.append(Member(name, "offline", shadow_set, group, index, train, forget))
    return shadows


def overlap(split: Split) -> float:
    """Return the share of a half of (b) that one shadow trains on: how much two shadows of a half have in common."""
    return split.train_size / (split.shadow_pool / 2) if split.shadow_pool else float("inf")


def overlap_warnings(split: Split) -> tuple[str, ...]:
    """Return what a reader of error rates must know about shared training data (spec: warn above one half)."""
    warnings = []
    if overlap(split) > 0.5:
        warnings.append(
            f"each shadow trains on {overlap(split):.0%} of its half of the shadow pool: promised false-positive rates "
            f"will not hold (5 % was found as 7 to 53 %); use a shadow_pool of at least {4 * split.train_size}"
        )
    if split.targets > 1 and split.targets * split.train_size > split.target_pool:
        warnings.append(
            "targets share training points, so they are not independent and intervals are too narrow; "
            f"use a target_pool of at least {split.targets * split.train_size}"
        )
    return tuple(warnings)


def shared_half_warnings(groups: tuple[tuple[Member, ...], tuple[Member, ...]], asked: Ids) -> tuple[str, ...]:
    """Return a warning when shadows that judge share training points (candidates apart) with those that search."""
    drawn = [np.setdiff1d(np.concatenate([member.train for member in group]), asked) for group in groups]
    shared = len(np.intersect1d(drawn[0], drawn[1]))
    if not shared:
        return ()
    return (
        f"the two groups of shadows share {shared} training points: pseudo-targets are not independent of the search "
        "and promised false-positive rates will not hold; use disjoint halves of the shadow pool",
    )


def check_split(points: int, split: Split) -> None:
    """Refuse a design that the data cannot fill, with the number that would do."""
    rules = [
        (
            split.points <= points,
            f"the pools need {split.points} points, the data has {points}; make the pools smaller",
        ),
        (
            split.train_size <= split.target_pool,
            f"split.train_size is {split.train_size}, more than split.target_pool ({split.target_pool})",
        ),
        (
            0 < split.forget < 1 and split.forget_count < split.train_size,
            f"split.forget is {split.forget}; allowed: above 0 and below 1, with at least one point to retain",
        ),
        (
            0 < split.candidates_forget <= split.forget_count,
            f"split.candidates.forget is {split.candidates_forget}; allowed: 1 to {split.forget_count}, the forget set",
        ),
        (
            split.targets * split.candidates_unseen < split.test_pool and split.candidates_unseen > 0,
            f"split.candidates.unseen × targets is {split.targets * split.candidates_unseen}; "
            f"it must be at least 1 and below split.test_pool ({split.test_pool})",
        ),
        (
            split.shadows % 4 == 0 and split.shadows > 0,
            f"split.shadows is {split.shadows}; the balanced design needs a multiple of 4 (pairs in each half)",
        ),
        (
            split.offline_shadows % 2 == 0 and split.offline_shadows > 0,
            f"split.offline_shadows is {split.offline_shadows}; it must be even (half per half of the pool), 2 or more",
        ),
        (
            split.targets_per_shadow_set * (split.candidates_forget + split.candidates_unseen)
            <= 2 * split.forget_count,
            "half of a shadow set's candidates must fit into a forget set: at most "
            f"{2 * split.forget_count} candidates per shadow set",
        ),
        (
            split.train_size <= split.shadow_pool // 2,
            f"split.shadow_pool is {split.shadow_pool}; each half must hold a training set of {split.train_size}",
        ),
    ]
    for holds, message in rules:
        if not holds:
            raise BadInput(message)

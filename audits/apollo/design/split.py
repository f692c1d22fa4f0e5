"""Sizes of a design and what is forgotten in it: the form of the forget set, what does not fit, what weakens it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from audits.errors import BadInput, did_you_mean, how_many


@dataclass(frozen=True)
class ForgetClasses:
    """Forget the training points of ``classes`` (indices, or names until ``indexed``), or a ``fraction`` of them."""

    classes: tuple[int | str, ...]
    fraction: float = 1.0

    def indexed(self, names: Sequence[str]) -> ForgetClasses:
        """Return the same with indices only; ``names`` are the data set's classes in order. Raises ``BadInput``."""
        return replace(self, classes=tuple(class_index(entry, names) for entry in self.classes))

    @property
    def indices(self) -> tuple[int, ...]:
        """The class indices. Raises ``BadInput`` while there are names among them."""
        for entry in self.classes:
            if not isinstance(entry, int):
                raise BadInput(f"split.forget.classes has the name {entry!r}; give the names of the data's classes")
        return tuple(int(entry) for entry in self.classes)


@dataclass(frozen=True)
class ForgetIds:
    """Forget exactly the points ``ids`` of the data set, on which every target trains."""

    ids: tuple[int, ...]


def class_index(entry: int | str, names: Sequence[str]) -> int:
    """Return the index of the class ``entry`` (a name, or an index already). Raises ``BadInput``."""
    if isinstance(entry, str) and entry in names:
        return list(names).index(entry)
    if isinstance(entry, int) and 0 <= entry < len(names):
        return entry
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    near = did_you_mean(entry, names) if isinstance(entry, str) else ""
    raise BadInput(f"split.forget.classes has {entry!r}{near}; allowed: 0 to {len(names) - 1}, or a name: {shown}")


@dataclass(frozen=True)
class Split:
    """Sizes of the design; counts of points unless said otherwise.

    ``targets`` models of ``train_size`` points from ``target_pool``; each forgets ``forget`` (a fraction, the points of
    classes, or ids). Per target ``candidates_forget`` forgotten points are asked about, ``candidates_unseen`` points of
    ``test_pool`` and ``candidates_retained`` points of its retain set. ``shadows`` (m) and ``offline_shadows`` count
    models per shadow set, half of them on each half of ``shadow_pool``. ``audited``: candidates are drawn at random, or
    are those that ``ranking_models`` models memorise most (``audits.apollo.design.memorisation``); the subclass
    ``audits.apollo.design.exposure.ExposedSplit`` says that they are ranked otherwise.
    """

    targets: int
    train_size: int
    target_pool: int
    shadow_pool: int
    test_pool: int
    forget: float | ForgetClasses | ForgetIds
    candidates_forget: int
    candidates_unseen: int
    shadows: int
    offline_shadows: int
    targets_per_shadow_set: int = 1
    candidates_retained: int = 0
    audited: Literal["random", "memorised"] = "random"
    ranking_models: int = 32

    @property
    def forget_ids(self) -> tuple[int, ...]:
        """The point ids that the split names; none for the other forms."""
        return self.forget.ids if isinstance(self.forget, ForgetIds) else ()

    @property
    def forget_count(self) -> int | None:
        """Points that each model forgets; None for classes, where each model's data decide."""
        if isinstance(self.forget, ForgetClasses):
            return None
        return len(self.forget.ids) if isinstance(self.forget, ForgetIds) else round(self.forget * self.train_size)

    @property
    def candidates_per_target(self) -> int:
        """Points asked about per target, all groups together."""
        return self.candidates_forget + self.candidates_unseen + self.candidates_retained

    @property
    def most_forgotten_inside(self) -> int:
        """The most candidates that a shadow forgets: its half of them, or half of these if there are retained ones."""
        per_set = self.targets_per_shadow_set * self.candidates_per_target
        return per_set // 4 + 1 if self.candidates_retained else math.ceil(per_set / 2)

    @property
    def most_kept_inside(self) -> int:
        """The most candidates that a shadow trains on and keeps."""
        return self.most_forgotten_inside if self.candidates_retained else 0

    @property
    def shadow_sets(self) -> int:
        """Shadow sets that the targets need."""
        return -(-self.targets // self.targets_per_shadow_set)

    @property
    def points(self) -> int:
        """Points that the three pools and the ids to forget need."""
        return self.target_pool + self.shadow_pool + self.test_pool + len(self.forget_ids)


CANDIDATES_SHARE = 0.25
"""Of a shadow's training set; above it a warning is due."""


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
    asked = split.targets_per_shadow_set * split.candidates_per_target / 2
    if asked > CANDIDATES_SHARE * split.train_size:
        warnings.append(
            f"candidates make up {asked / split.train_size:.0%} of each shadow's training set, which shadows share and "
            "the target does not: promised false-positive rates may not hold (5 % was found as 6 %); use more targets "
            f"with fewer candidates each, or a train_size of at least {asked / CANDIDATES_SHARE:.0f}"
        )
    drawn = split.train_size - len(split.forget_ids)
    if split.targets > 1 and split.targets * drawn > split.target_pool:
        warnings.append(
            "targets share training points, so they are not independent and intervals are too narrow; "
            f"use a target_pool of at least {split.targets * drawn}"
        )
    if split.forget_ids:
        warnings.append(
            "split.forget names the points: never-seen candidates have the same labels, but whatever else is special "
            "about the named points counts as signal; compare with the rows identity and retrain"
        )
    if split.forget_ids and split.targets > 1:
        warnings.append(
            f"all {split.targets} targets train on and forget the same {how_many(len(split.forget_ids), 'id')}: "
            "targets are not independent over points and intervals do not cover the choice of points"
        )
    return tuple(warnings)


def check_split(points: int, split: Split) -> None:
    """Refuse a design that the data cannot fill, with the number that would do.

    Whether the pools hold enough points of the classes to forget is seen when they are drawn.
    """
    rules = [
        (
            split.points <= points,
            f"the pools need {split.points} points, the data has {points}; make the pools smaller",
        ),
        (
            split.train_size - len(split.forget_ids) <= split.target_pool,
            f"split.train_size is {split.train_size}, more than split.target_pool ({split.target_pool})",
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
            split.candidates_retained == 0 or (split.candidates_retained > 0 and split.shadows % 8 == 0),
            f"split.candidates.retained is {split.candidates_retained} and split.shadows {split.shadows}; "
            "with retained candidates the balanced design needs a multiple of 8 shadows",
        ),
        (
            split.offline_shadows % 2 == 0 and split.offline_shadows > 0,
            f"split.offline_shadows is {split.offline_shadows}; it must be even (half per half of the pool), 2 or more",
        ),
        *forget_rules(points, split),
        (
            split.train_size <= split.shadow_pool // 2,
            f"split.shadow_pool is {split.shadow_pool}; each half must hold a training set of {split.train_size}",
        ),
    ]
    for holds, message in rules:
        if not holds:
            raise BadInput(message)


def forget_rules(points: int, split: Split) -> list[tuple[bool, str]]:
    """Return the rules of the forget set, each with the message for when it does not hold."""
    forget, count, size = split.forget, split.forget_count, split.train_size
    if isinstance(forget, ForgetClasses):
        return [
            (0 < forget.fraction <= 1, f"split.forget.fraction is {forget.fraction}; allowed: above 0, up to 1"),
            (split.candidates_forget > 0, f"split.candidates.forget is {split.candidates_forget}; allowed: 1 or more"),
            (
                forget.fraction < 1 or split.candidates_retained == 0,
                "split.candidates.retained: no target retains a point of the classes that it forgets whole; "
                "use split.forget.fraction below 1, or no retained candidates",
            ),
        ]
    assert count is not None
    most_asked = 2 * count if not split.candidates_retained else 4 * count - 1
    odd = next((entry for entry in split.forget_ids if not 0 <= entry < points), None)
    amount = f"{forget}" if isinstance(forget, float | int) else how_many(count, "id")
    return [
        (odd is None, f"split.forget.ids has {odd}; allowed: point ids 0 to {points - 1}"),
        (len(set(split.forget_ids)) == len(split.forget_ids), "split.forget.ids names a point twice; once is enough"),
        (
            0 < count < size and (not isinstance(forget, float) or 0 < forget < 1),
            f"split.forget is {amount}; allowed: above 0 and below 1, with at least one point to retain",
        ),
        (
            0 < split.candidates_forget <= count,
            f"split.candidates.forget is {split.candidates_forget}; allowed: 1 to {count}, the forget set",
        ),
        (
            max(split.candidates_retained, split.most_kept_inside) <= size - count,
            f"split.candidates.retained is {split.candidates_retained}; allowed: 0 to {size - count}, the retain set, "
            f"of which a shadow needs {split.most_kept_inside} for its candidates",
        ),
        (
            split.most_forgotten_inside <= count,
            "half of a shadow set's candidates must fit into a forget set (a quarter if some are retained): at most "
            f"{most_asked} candidates per shadow set",
        ),
    ]

"""Rules for forget sets: a fraction of its training set, all points of some classes, or named points.

Each rule answers the same questions for targets and for shadows, so that both forget sets of one form. It also says
which points a forgotten candidate may be compared with: were never-seen candidates of other classes than the forgotten
ones, the label alone would give the answer away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.apollo.design.population import NONE, Member
from audits.apollo.design.split import ForgetClasses, ForgetIds, Split
from audits.arrays import Ids, Labels
from audits.errors import BadInput


@dataclass(frozen=True)
class Inside:
    """The candidates that a shadow trains on, sorted, and those of them that it forgets (all, unless some are kept)."""

    ids: Ids
    forgotten: Ids


@dataclass(frozen=True)
class Fixed:
    """Points that a target must train on: to forget (in this order) and to keep."""

    forget: Ids
    keep: Ids


@dataclass(frozen=True)
class Rule(ABC):
    """A rule by which the models of one design choose their forget sets."""

    split: Split

    def fixed(self, rng: np.random.Generator) -> Fixed:
        """Return the points that the rule itself makes a target train on."""
        return Fixed(NONE, NONE)

    @abstractmethod
    def of_target(self, drawn: Ids, fixed: Fixed, rng: np.random.Generator) -> Ids:
        """Return the forget set of a target that trains on ``fixed`` and ``drawn``; candidates come first."""

    def draw(self, pool: Ids, size: int, rng: np.random.Generator) -> Ids:
        """Return ``size`` points of ``pool`` at random: for a target that has no share of its own in it."""
        return rng.choice(pool, size, replace=False)

    def retained(self, target: Member, rng: np.random.Generator) -> Ids:
        """Return the points that a target retains, in the order in which they are asked about."""
        return rng.permutation(target.retain)

    def dealt(self, asked: Ids) -> Ids:
        """Return what complementary shadows share out of the candidates ``asked``, sorted: the points."""
        return asked

    def points_inside(self, asked: Ids, dealt: Inside) -> Inside:
        """Return the candidates, of ``asked``, that a shadow has of what it was ``dealt``: the points themselves."""
        return dealt

    def comparable(self, pool: Ids, forgotten: Ids, count: int) -> Ids:
        """Return ``count`` points of ``pool`` (fewer if it lacks them) that labels cannot tell from ``forgotten``."""
        return pool[:count]

    @abstractmethod
    def of_shadow(
        self, half: Ids, inside: Inside, targets: Sequence[Member], rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Return (training set, forget set) of a shadow on ``half``; ``targets`` are those that it serves."""

    @abstractmethod
    def of_offline(self, half: Ids, targets: Sequence[Member], rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return (training set, forget set) of an offline shadow on ``half``."""

    def together(self, inside: Inside, own: Ids, forgets: Ids, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return (training set in random order, forget set): candidates, ``own`` points, those of them to forget."""
        return rng.permutation(np.concatenate([inside.ids, own])), np.concatenate([inside.forgotten, forgets])


@dataclass(frozen=True)
class FractionRule(Rule):
    """Forget a random fraction of the training set."""

    @property
    def count(self) -> int:
        """Points that every model forgets."""
        return self.split.forget_count or 0

    def of_target(self, drawn: Ids, fixed: Fixed, rng: np.random.Generator) -> Ids:
        """Return the fixed points to forget, filled up with random ones of ``drawn``."""
        return np.concatenate([fixed.forget, rng.choice(drawn, self.count - len(fixed.forget), replace=False)])

    def of_shadow(
        self, half: Ids, inside: Inside, targets: Sequence[Member], rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Return random points of the half beside the candidates; the forget set is filled up with these."""
        own = rng.choice(half, self.split.train_size - len(inside.ids), replace=False)
        return self.together(inside, own, own[: max(0, self.count - len(inside.forgotten))], rng)

    def of_offline(self, half: Ids, targets: Sequence[Member], rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return random points of the half, a random part of which is forgotten."""
        train = rng.choice(half, self.split.train_size, replace=False)
        return train, rng.choice(train, self.count, replace=False)


@dataclass(frozen=True)
class ClassRule(Rule):
    """Forget the training points of some classes, or a fraction of them; all candidates are of these classes.

    A shadow has as many points of the classes as the targets that it serves (their mean), and forgets as many.
    """

    of_classes: NDArray[np.bool_]
    fraction: float

    def of_target(self, drawn: Ids, fixed: Fixed, rng: np.random.Generator) -> Ids:
        """Return the target's points of the classes in random order, cut to the fraction."""
        own = drawn[self.of_classes[drawn]]
        chosen: Ids = rng.permutation(own)[: round(self.fraction * len(own))]
        asked = self.split.candidates_forget
        if len(chosen) < asked:
            raise BadInput(
                f"split.candidates.forget is {asked}, but a target has only {len(chosen)} points of the classes to "
                "forget; ask about fewer, name more classes, or raise split.train_size"
            )
        if len(chosen) == len(drawn):
            raise BadInput("split.forget: the classes are all that a target trains on; leave a class to retain")
        return chosen

    def comparable(self, pool: Ids, forgotten: Ids, count: int) -> Ids:
        """Return points of the same classes."""
        return pool[self.of_classes[pool]][:count]

    def of_shadow(
        self, half: Ids, inside: Inside, targets: Sequence[Member], rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Return points with the targets' class shares; at fraction 1 all points of the classes are forgotten."""
        of_classes = round(float(np.mean([self.of_classes[target.train].sum() for target in targets])))
        count = round(float(np.mean([len(target.forget) for target in targets])))
        size, mates, others = self.split.train_size, half[self.of_classes[half]], half[~self.of_classes[half]]
        kept = len(inside.ids) - len(inside.forgotten)
        if len(inside.forgotten) > count or kept > of_classes - count:
            raise BadInput(
                f"split.candidates: a shadow trains on {len(inside.ids)} candidates and forgets "
                f"{len(inside.forgotten)} of them, but a target has {of_classes} points of the classes and forgets "
                f"{count}; ask about fewer points, name more classes, or raise split.train_size"
            )
        if len(mates) < of_classes - len(inside.ids) or len(others) < size - of_classes:
            raise BadInput(
                f"split.shadow_pool: a half holds {len(mates)} points of the classes to forget and {len(others)} "
                f"others, a shadow needs {of_classes} and {size - of_classes}; raise split.shadow_pool"
            )
        own = rng.choice(mates, of_classes - len(inside.ids), replace=False)
        rest = rng.choice(others, size - of_classes, replace=False)
        return self.together(inside, np.concatenate([own, rest]), own[: count - len(inside.forgotten)], rng)

    def of_offline(self, half: Ids, targets: Sequence[Member], rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return the same of the half alone."""
        return self.of_shadow(half, Inside(NONE, NONE), targets, rng)


@dataclass(frozen=True)
class IdsRule(FractionRule):
    """Forget named points, on which every target trains; the other candidates have the same labels.

    A shadow fills its forget set up with points of its half that have the labels of named points.
    """

    labels: Labels
    ids: Ids

    def fixed(self, rng: np.random.Generator) -> Fixed:
        """Return the named points, in an order of the target's own: it decides which of them are asked about."""
        return Fixed(rng.permutation(self.ids), NONE)

    def comparable(self, pool: Ids, forgotten: Ids, count: int) -> Ids:
        """Return points with the labels of ``forgotten`` in turn; fewer when the pool lacks one of them."""
        return self.alike(pool, np.resize(self.labels[forgotten], count))

    def alike(self, pool: Ids, wanted: Labels) -> Ids:
        """Return the first points of ``pool`` with each of the ``wanted`` labels, in the order of the pool."""
        chosen = [pool[self.labels[pool] == label][:count] for label, count in zip(*counted(wanted), strict=True)]
        return pool[np.isin(pool, np.concatenate([NONE, *chosen]))]

    def of_shadow(
        self, half: Ids, inside: Inside, targets: Sequence[Member], rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Return candidates, points alike to the named ones (forgotten too), and random others."""
        missing = max(0, self.count - len(inside.forgotten))
        wanted = np.resize(self.labels[rng.permutation(self.ids)], missing)
        mates = rng.permutation(self.alike(rng.permutation(half), wanted))
        others = np.setdiff1d(half, mates)
        size = self.split.train_size - len(inside.ids) - missing
        if len(mates) < missing or len(others) < size:
            raise BadInput(
                f"split.shadow_pool: a half holds only {len(mates)} of {missing} points with the labels of the ids to "
                "forget; raise split.shadow_pool"
            )
        own = rng.choice(others, size, replace=False)
        return self.together(inside, np.concatenate([mates, own]), mates, rng)

    def of_offline(self, half: Ids, targets: Sequence[Member], rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return the same of the half alone."""
        return self.of_shadow(half, Inside(NONE, NONE), targets, rng)


def counted(values: Labels) -> tuple[Labels, NDArray[np.int64]]:
    """Return the different values and how often each occurs."""
    found, counts = np.unique(values, return_counts=True)
    return found, counts.astype(np.int64)


def rule_of(points: int, split: Split, labels: Labels | None) -> Rule:
    """Return the rule of ``split.forget`` on a data set of ``points`` points with ``labels`` (N,).

    Raises ``BadInput`` when labels are needed and not given, or when no point has one of the classes.
    """
    if isinstance(split.forget, float | int):
        return FractionRule(split)
    if labels is None or len(labels) != points:
        raise BadInput(f"split.forget: classes and ids need the labels of all {points} points")
    if isinstance(split.forget, ForgetIds):
        return IdsRule(split, labels, np.array(split.forget.ids, np.int64))
    return class_rule(split, split.forget, labels)


def class_rule(split: Split, forget: ForgetClasses, labels: Labels) -> ClassRule:
    """Return the rule that forgets classes; each must have points."""
    absent = [index for index in forget.indices if index not in labels]
    if absent:
        raise BadInput(f"split.forget.classes has {absent[0]}, of which the data has no point")
    return ClassRule(split, np.isin(labels, forget.indices), forget.fraction)

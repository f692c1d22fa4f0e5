"""The rule for forget sets where points come in groups: whole groups are forgotten, retained and never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audits.apollo.design.forget_sets import Fixed, FractionRule, Inside
from audits.apollo.design.pools import parts_of_training
from audits.apollo.design.population import Member
from audits.arrays import Ids
from audits.data.groups import Part, deal, joined
from audits.errors import BadInput


@dataclass(frozen=True)
class GroupRule(FractionRule):
    """Forget whole groups that come to a fraction of the training set; no group is both forgotten and retained.

    ``groups``: (points,) of every point of the data set. Shadows take whole groups of their half, as targets do of
    their pool, and of each group of candidates all that is asked about or none. As groups differ in size, so do the
    numbers of candidates inside two complementary shadows; the rest of the half makes up for it.
    """

    groups: Ids

    def draw(self, pool: Ids, size: int, rng: np.random.Generator) -> Ids:
        """Return a training set from ``pool``, its parts one behind the other; parts share no group."""
        return joined(deal(pool, parts_of_training(self.split), self.groups, rng)[:-1])

    def of_target(self, drawn: Ids, fixed: Fixed, rng: np.random.Generator) -> Ids:
        """Return the first part of ``drawn``: pools and ``draw`` put it first."""
        return drawn[: self.count]

    def retained(self, target: Member, rng: np.random.Generator) -> Ids:
        """Return the retain set as it is: its first part are the retained candidates."""
        return target.retain

    def dealt(self, asked: Ids) -> Ids:
        """Return the groups of the candidates."""
        return np.unique(self.groups[asked])

    def points_inside(self, asked: Ids, dealt: Inside) -> Inside:
        """Return the candidates of the groups that a shadow was dealt."""
        own = self.groups[asked]
        return Inside(asked[np.isin(own, dealt.ids)], asked[np.isin(own, dealt.forgotten)])

    def of_shadow(
        self, half: Ids, inside: Inside, targets: Sequence[Member], rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Return whole groups of the half beside the candidates; the forget set is filled up with some of these."""
        size = self.split.train_size - len(inside.ids)
        missing = max(0, self.count - len(inside.forgotten))
        if size < missing:
            raise BadInput(
                f"split.candidates: the groups dealt to a shadow have {len(inside.ids)} candidates, which leaves no "
                f"room in a training set of {self.split.train_size}; ask about fewer or raise split.train_size"
            )
        own = self.of_half(half, missing, size - missing, rng)
        return self.together(inside, own, own[:missing], rng)

    def of_offline(self, half: Ids, targets: Sequence[Member], rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return whole groups of the half, the first of which are forgotten."""
        train = self.of_half(half, self.count, self.split.train_size - self.count, rng)
        return train, train[: self.count]

    def of_half(self, half: Ids, forgotten: int, kept: int, rng: np.random.Generator) -> Ids:
        """Return points of whole groups of ``half``: those to forget, then those to keep."""
        parts = [Part("split.shadow_pool", forgotten), Part("split.shadow_pool", kept)]
        return joined(deal(half, parts, self.groups, rng)[:-1])

"""The form of a membership attack: declared access, and a finding whose thresholds no judged point takes part in.

Attacks with shadows leave a pair of twins out in turn. The fit to the rest scores the judged models at all points and
the left-out twins at the points that each never saw; these are its null, for a judged model that did not train on a
point is exchangeable with a left-out twin that did not either: both are halves of the pool drawn alike, and the fit has
met neither. Fits to *all* shadows would compare a score of a model that the fit has not met with scores of models that
it was made of.

Decisions at a promised rate are those of the single fits, averaged, each against the nulls of all fits: the score of a
judged model by any of the fits is distributed as the null of any of them, and a mean of calls keeps a rate that each
keeps. Two ways more were simulated (``tests/audits/mia/test_exchangeability.py`` has the kind of model). Each fit
against its own null alone, two models, promises 1, 5, 10 % and calls up to 2, 9, 14 % where models differ as wholes
(RMIA, 60 known non-members). Cross-conformal p-values keep every rate but fall short of it the more, the more fits
differ: with 4 shadows .3, 3 and 8 % (LiRA), with 16 about what is promised. p-values have to be valid one by one, so
they are of that kind (``audits.statistics.cross_conformal``).

That null is of models which share the rest of the pool with the target. A model that was trained on other data is not
exchangeable with them: its answers differ from what shadows of the pool expect by the pool as well, so that its points
are called members more often than promised. Strangers, shadows of other pools, are its null, scored by the fit to all
shadows, which has met none of them. Nobody knows which of the two a target is like, so a point is called a member where
both nulls allow it, and the larger p-value counts: the promise holds in either world, on the careful side in one.

Attacks without (enough) shadows take known non-members as null, scored by the same model. That assumes that they are
drawn as the pool was: a shift between the two breaks the promise, and null models show it, for they are asked about
the pool's points alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput
from audits.mia.answers import Case, Posteriors
from audits.queries.access import Access
from audits.registry import Registry
from audits.statistics.conformal import decided, p_values
from audits.statistics.cross_conformal import cross_p_values

MIA_ATTACKS: Registry[type[Attack]] = Registry(
    "attack", "audits.mia.attacks", own="audits.mia.attacks.own:adapted", group="orch.attacks", prefix="mia."
)

FEWEST = 4
"""Shadows of an attack that leaves a pair of them out."""


@dataclass(frozen=True)
class Finding:
    """Scores of T judged models at D of the points, higher = more likely a member, and what decisions rest on.

    ``points`` (D,): places among the pool's; ``score`` (T, D). ``asked`` (P, T, D): the scores that decisions compare
    with ``nulls``, arrays ``[P][T]`` (N,): one part a fit, for known non-members one in all. ``queries``: per
    point and model. ``recognised`` (D,): the share of the left-out twins that had the point in which it lies above all
    but 1 % of the null of the same fit; None of attacks that leave nobody out. ``strangers``: scores (N,) of models
    that share nothing with the pool, by the fit that ``score`` is of; None where there are none.
    """

    points: Ids
    score: Floats
    asked: Floats
    nulls: tuple[tuple[Floats, ...], ...]
    queries: int = 1
    recognised: Floats | None = None
    strangers: Floats | None = None

    def decide(self, rate: float) -> Floats:
        """Return the probability (T, D) of saying "member" at the promised false-positive ``rate``, by both nulls."""
        found = self.decide_within(rate)
        return found if self.strangers is None else np.minimum(found, decided(self.score, self.strangers, rate))

    def decide_within(self, rate: float) -> Floats:
        """Return the same for a model that is a half of the pool.

        Every fit decides by itself, against the nulls of all fits, and counts alike.
        """
        found = []
        for model in range(len(self.score)):
            scores, nulls = self.of(model)
            null = np.concatenate(nulls)
            found.append(np.mean([decided(score, null, rate) for score in scores], axis=0))
        return np.stack(found)

    def p_values(self) -> Floats:
        """Return the p-value (T, D) of "the model did not train on the point"."""
        found = np.stack([cross_p_values(*self.of(model)) for model in range(len(self.score))])
        return found if self.strangers is None else np.maximum(found, p_values(self.score, self.strangers))

    @property
    def known(self) -> int:
        """How many known non-members set the threshold of a model; 0 where left-out twins did."""
        return len(self.nulls[0][0]) if len(self.nulls) == 1 else 0

    @property
    def beyond(self) -> tuple[Floats, ...]:
        """The scores of strangers, if there are any."""
        return () if self.strangers is None else (self.strangers,)

    def of(self, model: int) -> tuple[list[Floats], list[Floats]]:
        """Return scores (D,) and null of a model, part by part."""
        return [part[model] for part in self.asked], [part[model] for part in self.nulls]


@dataclass(frozen=True)
class Attack(ABC):
    """``access``: what it sees of a model; ``shadows``: how many it needs at least; ``subset``: it asks some points.

    Question: Which points of the pool was the model trained on?
    """

    name: ClassVar[str]
    access: ClassVar[Access] = "posteriors"
    shadows: ClassVar[int] = 0
    subset: ClassVar[bool] = False

    def judge(self, case: Case) -> Finding:
        """Return the finding of this attack, which is shown no more than its access allows."""
        found = self.find(case.view(self.access))
        if not all(
            np.isfinite(part).all() for part in (found.score, found.asked, *sum(found.nulls, ()), *found.beyond)
        ):
            raise FloatingPointError(
                f"attack {self.name} gave a score that is not a number; a shadow or a target may have diverged"
            )
        return found

    @abstractmethod
    def find(self, case: Case) -> Finding:
        """Return scores of the judged models and the null that they are compared with."""


class ShadowAttack(Attack):
    """An attack that is fitted to shadows of the same pool."""

    shadows: ClassVar[int] = FEWEST

    @abstractmethod
    def scores(self, asked: Posteriors, shadows: Posteriors, half: Bools) -> Floats:
        """Return the scores (A, K) of models by a fit to ``shadows``, ``half`` (M, K) bool of whose points is known."""

    def find(self, case: Case) -> Finding:
        """Return scores by all shadows; decisions by fits that leave each pair of twins out in turn."""
        targets = case.known_posteriors(self.name)
        shadows, half = case.known_shadows(self.name)
        if len(half) < FEWEST:
            raise BadInput(f"attack {self.name} has {len(half)} shadows; allowed: {FEWEST} or more (split.shadows)")
        asked, nulls, recognised = [], [], []
        for first in range(0, len(half), 2):
            pair, rest = [first, first + 1], np.delete(np.arange(len(half)), [first, first + 1])
            scored = self.scores(targets.beside(shadows.take(pair)), shadows.take(rest), half[rest])
            left = scored[len(targets) :]
            null = left[~half[pair] & case.ordinary]
            asked.append(scored[: len(targets)])
            nulls.append((null,) * len(targets))
            recognised.append(np.where(half[first], *left) > np.quantile(null, 0.99))
        score, strangers = self.scores(targets, shadows, half), None
        if case.strangers is not None:
            strangers = self.scores(case.strangers, shadows, half)[:, case.ordinary].ravel()
        return Finding(
            np.arange(half.shape[1]), score, np.stack(asked), tuple(nulls), recognised=np.mean(recognised, axis=0),
            strangers=strangers,
        )  # fmt: skip


def against_known(score: Floats, known: Floats, points: Ids | None = None, queries: int = 1) -> Finding:
    """Return the finding of scores (T, D) whose null is the same score of known non-members (T, E)."""
    places = np.arange(score.shape[1]) if points is None else points
    return Finding(places, score, score[None], (tuple(known),), queries)

"""The form of an attack of Apollo: declared access, and a finding whose thresholds are fixed on shadows alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.apollo.evidence.parts import Evidence
from audits.arrays import Floats
from audits.queries.access import Access
from audits.registry import Registry
from audits.statistics.conformal import decided, p_values

ATTACKS: Registry[type[Attack]] = Registry(
    "attack", "audits.apollo.attacks", own="audits.apollo.attacks.own:adapted", group="orch.attacks", prefix="apollo."
)

FORMER = {"apollo_paper": ("apollo_under", "apollo_over")}
"""Names that attacks once had → those that they have now."""


@dataclass(frozen=True)
class Finding:
    """``score``: (K,), higher = more likely forgotten; ``null``: the same score of models of which it is known that
    they never saw the point (any length); ``queries``: (K,) put to the target. ``parts``: where the score is a mean
    over scores, along several walks or in the places of several null models, those (score, null) pairs; they decide
    one by one, because the mean of several is narrower than the null of each. ``groups``: (K, 3) log-odds of forget,
    retained and unseen, of attacks that tell the three apart; None for the others."""

    score: Floats
    null: Floats
    queries: NDArray[np.int32]
    parts: tuple[tuple[Floats, Floats], ...] = ()
    groups: Floats | None = None

    @classmethod
    def of_parts(cls, parts: Sequence[tuple[Floats, Floats]], queries: NDArray[np.int32]) -> Finding:
        """Return the finding of ``parts``: the mean of their scores and all their nulls.

        A score may be (K,), or (S, K) in the places of S null models (``outside.stand_ins``), which share a null.
        """
        rows = [np.atleast_2d(score) for score, _ in parts]
        nulls = [null for _, null in parts]
        single = [(score, null) for scores, null in zip(rows, nulls, strict=True) for score in scores]
        mean: Floats = np.mean([scores.mean(0) for scores in rows], axis=0)
        return cls(mean, np.concatenate(nulls), queries, tuple(single))

    def decide(self, rate: float) -> Floats:
        """Return the probability (K,) of saying "forgotten" at the promised false-positive ``rate``."""
        parts = self.parts or ((self.score, self.null),)
        found: Floats = np.mean([decided(score, null, rate) for score, null in parts], axis=0)
        return found

    def p_values(self) -> Floats:
        """Return the p-value (K,) of "the target never saw the point", from null scores alone.

        Where the score has several parts, part k mod n speaks for candidate k: fixed before anybody is asked, so the
        p-value is valid whatever the parts have in common, and agrees with ``decide``. Rules that merge the parts and
        hold under any dependence cost more than the second part is worth: share of forgotten points with p ≤ .05 along
        Apollo's two walks (fashion14, identity, 250 points, walks correlated by .9): twice the average .064, twice the
        minimum .128, one part .148; simulated in ``tests/audits/apollo/attacks/test_p_values.py``.
        """
        parts = self.parts or ((self.score, self.null),)
        place = np.arange(len(self.score)) % len(parts)
        values = np.stack([p_values(score, null) for score, null in parts])
        found: Floats = np.take_along_axis(values, place[None], axis=0)[0]
        return found


@dataclass(frozen=True)
class Attack(ABC):
    """An attack reads evidence of the kinds ``reads`` within its declared access; one finding for all candidates.

    Question: Was the point unlearned, or did the model never train on it?
    """

    name: ClassVar[str]
    access: ClassVar[Access]
    reads: ClassVar[tuple[str, ...]]

    def judge(self, evidence: Evidence) -> Finding:
        """Return the finding of this attack, which is shown no more than its access allows."""
        finding = self.find(evidence.view(self.access))
        if not (np.isfinite(finding.score).all() and np.isfinite(finding.null).all()):
            raise FloatingPointError(
                f"attack {self.name} gave a score that is not a number; a shadow or the target may have diverged"
            )
        return finding

    @abstractmethod
    def find(self, evidence: Evidence) -> Finding:
        """Return scores of the candidates and of the null models."""

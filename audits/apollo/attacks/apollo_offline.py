"""Apollo, strictly offline: shadows that never saw a candidate, no fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.evidence.parts import Evidence, Walks
from audits.arrays import Bools, Floats
from audits.queries.access import Access


@ATTACKS.register("apollo_offline")
@dataclass(frozen=True)
class ApolloOffline(Attack):
    """Apollo offline (arXiv 2506.09923, section 4): shadows trained without any candidate, labels only, no fit.

    Score: share of true labels along the walk minus the shadows' mean confidence in them. The null comes from
    unlearned offline shadows of the other half of the pool.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("offline",)

    def find(self, evidence: Evidence) -> Finding:
        return less_expected(evidence.walk("offline"))


def less_expected(walks: Walks) -> Finding:
    """Return the finding of walks that offline shadows drew: nobody was inside, so nothing is fitted."""
    expected = walks.confidence.mean((-2, -1))
    scores = [surplus(target, mean) for target, mean in zip(walks.target, expected, strict=True)]
    nulls = [surplus(pseudo, mean).reshape(-1) for pseudo, mean in zip(walks.pseudo, expected, strict=True)]
    return Finding.of_parts(list(zip(scores, nulls, strict=True)), walks.queries)


def surplus(says_true: Bools, expected: Floats) -> Floats:
    """Return share of true labels (…, K) of answers (…, K, Q) minus ``expected`` (K,)."""
    found: Floats = says_true.mean(-1) - expected
    return found

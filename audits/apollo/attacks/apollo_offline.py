"""Apollo, strictly offline: shadows that never saw a candidate, no fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.surplus import less_expected
from audits.apollo.evidence.parts import Evidence
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

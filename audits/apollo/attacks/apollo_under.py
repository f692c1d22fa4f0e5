"""Apollo's rule UNDER: the boundary near the point moved too little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.paper_rule import UNDER, by_rule
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("apollo_under")
@dataclass(frozen=True)
class ApolloUnder(Attack):
    """Apollo online, rule UNDER (arXiv 2506.09923, section 5): "forgotten" iff the label stays y where shadows that
    never saw the point have left it.

    Score: the share of τ (``paper_rule.THRESHOLDS``) that say so, mean over the walks of both halves. Deviation: the
    paper picks τ on the judged points; here the null of pseudo-targets decides, and the best τ is shown beside its
    permutation band.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return by_rule(evidence.walk("apollo"), UNDER)

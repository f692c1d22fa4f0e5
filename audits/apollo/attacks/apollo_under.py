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

    Question: Did unlearning move the boundary near the point too little?

    Score: the share of τ (``paper_rule.THRESHOLDS``) by which the rule says "forgotten", mean over the walks of both
    halves.

    Source: Apollo, arXiv 2506.09923, section 5, rule UNDER.

    Deviations: the paper picks τ on the judged points; here the null of pseudo-targets decides, and the best τ is shown
    beside its permutation band.

    Cost: nothing beside ``apollo``, whose labels it reads.

    Not for: methods that unlearn too much, which ``apollo_over`` is to find.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return by_rule(evidence.walk("apollo"), UNDER)

"""Apollo's rule OVER: the boundary near the point moved too far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.paper_rule import OVER, by_rule
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("apollo_over")
@dataclass(frozen=True)
class ApolloOver(Attack):
    """Apollo online, rule OVER (arXiv 2506.09923, section 5): "forgotten" iff the label is not y where shadows that
    never saw the point are sure of it.

    Question: Did unlearning move the boundary near the point too far?

    Score: the share of τ (``paper_rule.THRESHOLDS``) by which the rule says "forgotten", mean over the walks of both
    halves. A point that the target still remembers is called unseen, and the AUC is then below ½.

    Source: Apollo, arXiv 2506.09923, section 5, rule OVER.

    Deviations: the paper picks τ on the judged points; here the null of pseudo-targets decides, and the best τ is shown
    beside its permutation band.

    Cost: nothing beside ``apollo``, whose labels it reads.

    Not for: methods that unlearn too little, which ``apollo_under`` finds.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return by_rule(evidence.walk("apollo"), OVER)

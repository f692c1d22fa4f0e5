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

    It finds methods that unlearn too much; a point that the target still remembers it calls unseen, and its AUC is then
    below ½. Score: the share of τ (``paper_rule.THRESHOLDS``) that say so, mean over the walks of both halves.
    Deviation: the paper picks τ on the judged points; here the null of pseudo-targets decides, and the best τ is shown
    beside its permutation band.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return by_rule(evidence.walk("apollo"), OVER)

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

    Score: share of true labels along the walk minus the shadows' mean confidence in them. The walk takes gradient steps
    on α·d ∓ β·mean CE(x'; θ^s), d the mean margin between the two largest logits.

    Source: Apollo, arXiv 2506.09923, section 4, offline.

    Deviations: d is the mean over all shadows, where the public code reads the first one's. Thresholds come from
    unlearned offline shadows of the other half of the pool, not from the judged points.

    Cost: 1 + 4·T labels a point; ``split.offline_shadows`` models trained once, whatever is asked about, and unlearned
    for the null. The walks serve all unlearning methods.

    Not for: the strongest answer where online shadows can be paid for; it cannot tell a point that is easy for
    everybody from one that is remembered as well as they do.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("offline",)

    def find(self, evidence: Evidence) -> Finding:
        return less_expected(evidence.walk("offline"))

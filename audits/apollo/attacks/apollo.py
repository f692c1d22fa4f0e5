"""Apollo, online: labels along the walks that shadows with and without the candidate have drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import calibrated
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("apollo")
@dataclass(frozen=True)
class Apollo(Attack):
    """Apollo online (arXiv 2506.09923, section 4) with the calibrated rule: adversarial walks, labels only.

    Score: log-odds of "forgotten" by a logistic regression on the label at x and the shares of true labels along the
    walks UNDER and OVER, each beside the point's leave-one-out means over pseudo-targets inside and outside
    (``calibration``). A walk takes T gradient steps on ±(α·mean_in CE(x'; θ^su) − β·mean_out CE(x'; θ^s)), each
    projected to the shell ε·(t − 1) ≤ ‖x' − x‖ ≤ ε·t.

    Source: Apollo, arXiv 2506.09923, section 4; the calibrated rule is ours.

    Deviations: the paper reads its thresholds off the judged points. Here unlearned shadows of the half of the pool
    that did not draw the walk decide, and both halves draw walks.

    Cost: 1 + 4·T labels a point; ``split.shadows`` models trained and unlearned for each set of targets; m·T forward
    and backward passes a candidate and direction.

    Not for: targets whose unlearning cannot be imitated: shadows that were unlearned otherwise break the promised rate.
    Where one label already tells, ``single_query`` costs a single one.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return calibrated(evidence.walk("apollo"))

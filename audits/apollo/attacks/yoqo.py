"""YOQO: one query where shadows with and without the candidate disagree (Wu et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import calibrated
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("yoqo")
@dataclass(frozen=True)
class Yoqo(Attack):
    """YOQO online (Wu et al., ICLR 2024) with the calibrated rule: one label per half of the shadows, two in all.

    Score: log-odds of "forgotten" by a logistic regression on the label at an input near x where shadows that had the
    candidate say its class and the others say another, beside the point's leave-one-out rates over pseudo-targets.

    Source: Wu et al., "You Only Query Once", ICLR 2024.

    Deviations: the paper says "member" if the label is right; here the label is weighed by how often pseudo-targets
    with and without the point give it.

    Cost: 2 labels a point; ``split.shadows`` models trained and unlearned for each set of targets; gradient steps
    through them for each input.

    Not for: few shadows, which the input fits by heart.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("yoqo",)

    def find(self, evidence: Evidence) -> Finding:
        return calibrated(evidence.walk("yoqo"))

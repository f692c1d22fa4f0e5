"""Control of Apollo's walk: the calibrated label at the point itself, one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import calibrated
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("single_query")
@dataclass(frozen=True)
class SingleQuery(Attack):
    """Control: one query at x, judged with the point's own in and out rates over pseudo-targets.

    Question: What does a walk add over the label at the point itself?

    Score: log-odds of "forgotten" by a logistic regression on the label at x and the point's leave-one-out rates of
    true labels over pseudo-targets inside and outside.

    Source: the control is ours; calibration as in ``apollo``.

    Deviations: none, since there is no paper.

    Cost: one label a point; ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: a point whose label all shadows give: one label then says nothing.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("point",)

    def find(self, evidence: Evidence) -> Finding:
        return calibrated(evidence.walk("point"))

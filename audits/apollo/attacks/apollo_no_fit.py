"""Control of the calibrated rule: Apollo's online walks, scored without any fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.surplus import less_expected
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("apollo_no_fit")
@dataclass(frozen=True)
class ApolloNoFit(Attack):
    """Control: the labels that ``apollo`` asks, without its fit; what ``apollo`` gains over it, the calibration adds.

    Question: What does the calibration of ``apollo`` add to the labels that it asks?

    Score: share of true labels at x and along the online walk minus the mean confidence of the shadows that drew it and
    never saw the point. The formula is that of ``apollo_offline``, whose walks are drawn without any candidate.

    Source: the walks of arXiv 2506.09923, section 4; the score is difficulty calibration (Watson et al., arXiv
    2111.08440) with labels in place of the loss.

    Deviations: the paper has no such control.

    Cost: nothing beside ``apollo``, whose labels it reads.

    Not for: a result of its own; it stands beside ``apollo``.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return less_expected(evidence.walk("apollo"))

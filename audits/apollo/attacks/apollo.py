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
    """Apollo online (arXiv 2506.09923, section 4) with the calibrated rule: adversarial walks, labels only."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        return calibrated(evidence.walk("apollo"))

"""Control of Apollo's walk: the calibrated label at the point itself, one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.attacks.base import Attack, Finding, attack
from audits.attacks.calibration import calibrated
from audits.evidence.parts import Evidence
from audits.oracles import Access


@attack("single_query")
@dataclass(frozen=True)
class SingleQuery(Attack):
    """Control: one query at x, judged with the point's own in and out rates over pseudo-targets."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("point",)

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``."""
        return calibrated(evidence.walk("point"))

"""Control of Apollo's search: random directions, the same radii, the same calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.attacks.base import Attack, Finding, attack
from audits.attacks.calibration import calibrated
from audits.evidence.parts import Evidence
from audits.oracles import Access


@attack("random_directions")
@dataclass(frozen=True)
class RandomDirections(Attack):
    """Control: Apollo's queries and calibration along random directions; what Apollo gains over it, the search adds."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("random",)

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``."""
        return calibrated(evidence.walk("random"))

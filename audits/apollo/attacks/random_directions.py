"""Control of Apollo's search: random directions, the same radii, the same calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import calibrated
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("random_directions")
@dataclass(frozen=True)
class RandomDirections(Attack):
    """Control: Apollo's queries and calibration along random directions; what Apollo gains over it, the search adds."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("random",)

    def find(self, evidence: Evidence) -> Finding:
        return calibrated(evidence.walk("random"))

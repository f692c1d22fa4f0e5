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
    """Control: Apollo's queries and calibration along random directions; what Apollo gains over it, the search adds.

    Question: What does the adversarial search of ``apollo`` add over noise of the same size?

    Score: that of ``apollo``, with walks in random directions at the radii that its search travelled.

    Source: the control is ours; calibration as in ``apollo``.

    Deviations: none, since there is no paper.

    Cost: as ``apollo``, without its gradient steps.

    Not for: a result of its own; it stands beside ``apollo``.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("random",)

    def find(self, evidence: Evidence) -> Finding:
        return calibrated(evidence.walk("random"))

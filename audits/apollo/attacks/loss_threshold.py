"""Loss threshold: forgotten if the loss is small (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access
from audits.signals.confidence import scaled


@ATTACKS.register("loss_threshold")
@dataclass(frozen=True)
class LossThreshold(Attack):
    """Context: the target's confidence in the true label, one threshold for all points (Yeom et al., arXiv 1709.01604).

    Score: log(p_y/(1 − p_y)), which orders points as the loss does. The null are unlearned shadows that never saw a
    point.

    Source: Yeom et al., arXiv 1709.01604.

    Deviations: the threshold keeps a promised rate; the paper's is the mean training loss.

    Cost: posteriors at the point; unlearned shadows for the null alone.

    Not for: the exposure of single points: easy points that were never seen look remembered. With shadows of another
    recipe its promised rate breaks first.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.posterior()
        null = scaled(seen.shadow, seen.labels)[seen.outside]
        return Finding(scaled(seen.target, seen.labels), null, seen.queries)

"""Loss threshold: forgotten if the loss is small (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.attacks.base import Attack, Finding, attack
from audits.attacks.confidence import scaled
from audits.evidence.parts import Evidence
from audits.oracles import Access


@attack("loss_threshold")
@dataclass(frozen=True)
class LossThreshold(Attack):
    """Context: the target's confidence in the true label, one threshold for all points (Yeom et al., arXiv 1709.01604).

    Scored by log(p/(1−p)), which orders points as the loss does. The null are unlearned shadows that never saw a point.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``."""
        seen = evidence.posterior()
        null = scaled(seen.shadow, seen.labels)[seen.outside]
        return Finding(scaled(seen.target, seen.labels), null, seen.queries)

"""Label gap: forgotten if the label is right (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.attacks.base import Attack, Finding, attack
from audits.evidence.parts import Evidence
from audits.oracles import Access


@attack("label_gap")
@dataclass(frozen=True)
class LabelGap(Attack):
    """Context: one query, "forgotten" if the target answers the true label (Yeom et al., arXiv 1709.01604)."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("point",)

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``. The null is the label at x of pseudo-targets that never saw the point."""
        walks = evidence.walk("point")
        null = walks.pseudo[..., 0][walks.outside]
        return Finding(walks.target[0, :, 0].astype(float), null.astype(float), walks.queries)

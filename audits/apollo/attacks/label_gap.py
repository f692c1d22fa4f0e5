"""Label gap: forgotten if the label is right (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("label_gap")
@dataclass(frozen=True)
class LabelGap(Attack):
    """Context: one query, "forgotten" if the target answers the true label (Yeom et al., arXiv 1709.01604).

    Score: 1 where the label is right, else 0. The null are pseudo-targets that never saw the point.

    Source: Yeom et al., arXiv 1709.01604, the gap between training and test accuracy.

    Deviations: decisions keep a promised rate, by lot among points whose label is right.

    Cost: one label a point; unlearned shadows for the null.

    Not for: the exposure of single points: it has two values, and all points of one value are alike.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("point",)

    def find(self, evidence: Evidence) -> Finding:
        """Return 1 where the label is right, else 0; the null are pseudo-targets that never saw the point."""
        walks = evidence.walk("point")
        null = walks.pseudo[..., 0][walks.outside]
        return Finding(walks.target[0, :, 0].astype(float), null.astype(float), walks.queries)

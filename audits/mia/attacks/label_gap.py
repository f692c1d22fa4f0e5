"""Label gap: a member's label is right (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.mia.answers import Case
from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding, against_known
from audits.queries.access import Access


@MIA_ATTACKS.register("label_gap")
@dataclass(frozen=True)
class LabelGap(Attack):
    """Member if the label is right (Yeom et al., arXiv 1709.01604): one query, and no more than the train–test gap.

    Score: 1 where the label is right, else 0.

    Source: Yeom et al., arXiv 1709.01604.

    Deviations: with two scores alone a promised rate is kept by lot among points whose label is right.

    Cost: one label a point; no shadows.

    Not for: the exposure of single points: all points of one value are alike.
    """

    access: ClassVar[Access] = "labels"

    def find(self, case: Case) -> Finding:
        """Return 1 where the label is right, else 0."""
        return against_known(case.labels.right.astype(np.float64), case.labels.known.astype(np.float64))

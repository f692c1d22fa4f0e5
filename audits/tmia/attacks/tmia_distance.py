"""TMIA without a map: distances to the boundary, ranked among reference models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.queries.access import Access
from audits.tmia.answers import Answers, Grouped
from audits.tmia.attacks.base import ATTACKS, JudgeSettings, Reading
from audits.tmia.attacks.ranked import RankAttack


@ATTACKS.register("tmia_distance")
@dataclass(frozen=True)
class TmiaDistance(RankAttack):
    """TMIA without a map: signed distances are ranked, which leaves out the regression and its ties.

    Score: the L2 distance to the decision boundary, with a minus sign where the label is not y*; p is its rank among
    those of the reference models, member if p ≤ beta.

    Source: after Chen et al., Journal on Communications 42(10), 2021.

    Deviations: no confidence is reconstructed: one monotone map for all models leaves the ranks as they are.

    Cost: 316 labels a candidate and model at schedule ``rank``; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: recorded answers, since the search asks about inputs of its own making.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, signed distances and queries a point."""
        labels = view.known_labels()
        return labels.rows, labels.known("distance"), labels.queries["distance"]

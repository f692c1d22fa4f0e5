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
    """TMIA without a map: signed distances are ranked, which leaves out the regression and its ties."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, signed distances and queries a point."""
        labels = view.known_labels()
        return labels.rows, labels.known("distance"), labels.queries["distance"]

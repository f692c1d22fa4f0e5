"""TMIA with posteriors: true losses, ranked among reference models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.queries.access import Access
from audits.tmia.answers import Answers, Grouped
from audits.tmia.attacks.base import ATTACKS, JudgeSettings, Reading
from audits.tmia.attacks.ranked import RankAttack, confident


@ATTACKS.register("tmia_posterior")
@dataclass(frozen=True)
class TmiaPosterior(RankAttack):
    """TMIA with the true confidence: the reference beside which the label-only forms are set."""

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, minus the losses of true confidences, and queries a point."""
        return confident(view)

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
    """TMIA with the true confidence: the reference beside which the label-only forms are set.

    Score: minus −log p, p the confidence of y*; its rank among those of the reference models is the p-value, member if
    p ≤ beta.

    Source: Chen et al., Journal on Communications 42(10), 2021, with the confidence itself.

    Deviations: the paper's attacker has labels alone.

    Cost: posteriors at the candidates; ``split.reference_models`` models, which serve all targets and candidates.

    Not for: attackers with labels alone; β below 1/(n_ref + 1).
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, minus the losses of true confidences, and queries a point."""
        return confident(view)

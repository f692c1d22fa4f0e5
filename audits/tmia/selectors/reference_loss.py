"""Points that are hard for all reference models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.errors import BadInput
from audits.tmia.selectors.base import SELECTORS, Case, Scores, Selector


@SELECTORS.register("reference_loss")
@dataclass(frozen=True)
class ReferenceLoss(Selector):
    """Mean loss over reference models, none of which trained on a candidate: points that are hard for all.

    Not of the paper. A reference sample's mean is over the models that did not train on it; samples that all of them
    trained on are left out.
    """

    def select(self, case: Case) -> Scores:
        if case.loss is None:
            raise BadInput(
                "selector reference_loss reads the reference models' losses on candidates, but none are given"
            )
        score = case.loss.mean(0)
        if case.reference_loss is None or case.reference_outside is None:
            return Scores(score)
        outside = case.reference_outside
        count = outside.sum(0)
        total = np.where(outside, case.reference_loss, 0.0).sum(0)
        return Scores(score, total[count > 0] / count[count > 0])

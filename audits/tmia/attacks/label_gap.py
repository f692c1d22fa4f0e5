"""Label gap: a member's label is right (Yeom et al., arXiv 1709.01604)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Bools
from audits.queries.access import Access
from audits.tmia.answers import JUDGED, Answers
from audits.tmia.attacks.base import ATTACKS, Attack, JudgeSettings, Reading, Ruling
from audits.tmia.attacks.shadows import Verdict, everyone, ruled


@dataclass(frozen=True)
class LabelGap:
    """Member if the predicted label is the true one (Yeom et al., arXiv 1709.01604; "gap attack"). One query."""

    access: ClassVar[Access] = "labels"

    def judge(self, predicted: ArrayLike, label: ArrayLike) -> Verdict:
        """Return the verdict on targets' labels ``predicted`` (T, K) against true classes ``label`` (K,) or (T, K)."""
        right: Bools = np.asarray(predicted) == np.asarray(label)
        return Verdict(right, right.astype(np.float64), everyone(right))


@ATTACKS.register("label_gap")
@dataclass(frozen=True)
class LabelGapAttack(Attack):
    """Member if the label is right (Yeom et al., arXiv 1709.01604): one query; vacuous where y* is the own label.

    Score: 1 where the label is the true one, else 0.

    Source: Yeom et al., arXiv 1709.01604.

    Deviations: none.

    Cost: one label a candidate; no reference models.

    Not for: a promised rate: it calls every point whose label is right; modes in which y* is each model's own label,
    where it is refused.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ()
    needs_true_label: ClassVar[bool] = True

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling; the statistic is 1 where the label is right, else 0."""
        labels = view.known_labels()
        predicted = np.concatenate([labels.predicted[group] for group in JUDGED])
        verdict = LabelGap().judge(predicted, labels.label[labels.rows])
        return ruled(verdict, labels.rows, len(labels.predicted["target"]))

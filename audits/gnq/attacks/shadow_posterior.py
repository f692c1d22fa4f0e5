"""A classifier of posteriors (Shokri et al. 2017; Salem et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Labels
from audits.gnq.answers import PoolAnswers
from audits.gnq.attacks.base import POOL_ATTACKS
from audits.gnq.attacks.learned import LearnedAttack
from audits.signals.confidence import scaled

TOP = 3


@POOL_ATTACKS.register("shadow_posterior")
@dataclass(frozen=True)
class ShadowPosterior(LearnedAttack):
    """Classifier of posteriors that learns from shadows (Shokri et al., arXiv 1610.05820; Salem et al., 1806.01246).

    Score: the classifier's probability of "member" given the three largest posteriors in falling order, whether the
    prediction is right, and log(p_y/(1 − p_y)), which stands for the loss.

    Source: Shokri et al., arXiv 1610.05820; Salem et al., arXiv 1806.01246.

    Deviations: logarithms, which tell .999 from .9999; one classifier for all classes, as Salem's; boosted trees in
    place of a network.

    Cost: posteriors at the points; ``split.shadows`` models a pool, trained again behind each defence, and one fit.

    Not for: what a single point gives away: one rule serves all points, whatever is easy or hard.
    """

    def features(self, answers: PoolAnswers, labels: Labels) -> NDArray[Any]:
        from scipy.special import log_softmax

        posteriors = log_softmax(answers.logits.astype(np.float64), axis=-1)
        largest = -np.sort(-posteriors, axis=-1)[..., :TOP]
        right = answers.logits.argmax(-1) == labels
        return np.concatenate([largest, scaled(posteriors, labels)[..., None], right[..., None]], axis=-1)

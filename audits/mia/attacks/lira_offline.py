"""LiRA offline: how far above the models that never saw the point (Carlini et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Floats
from audits.mia.answers import Posteriors
from audits.mia.attacks.base import MIA_ATTACKS, ShadowAttack
from audits.signals.moderated import moderated_moments


@MIA_ATTACKS.register("lira_offline")
@dataclass(frozen=True)
class LiRAOffline(ShadowAttack):
    """LiRA offline (arXiv 2112.03570, section VI): the one-sided test against shadows that never saw the point.

    Score: −log Pr[Z > φ], Z ~ N(μ_out, σ²_out), which orders as the paper's 1 − Pr[Z > φ] and does not round to 1.
    Deviations: the variance is neither pooled over points nor a point's own, but between the two
    (``audits.signals.moderated``); no augmented queries.
    """

    def scores(self, asked: Posteriors, shadows: Posteriors, half: Bools) -> Floats:
        """Return −log Pr[Z > φ] (A, K)."""
        from scipy.special import log_ndtr

        mean, variance = moderated_moments(shadows.confidence, ~half)
        found: Floats = -log_ndtr((mean - asked.confidence) / np.sqrt(variance))
        return found

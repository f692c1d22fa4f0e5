"""LiRA offline: how far above the models that never saw the point (Carlini et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Floats
from audits.mia.answers import Posteriors
from audits.mia.attacks.base import MIA_ATTACKS, ShadowAttack
from audits.signals.likelihood_ratio import surprise


@MIA_ATTACKS.register("lira_offline")
@dataclass(frozen=True)
class LiRAOffline(ShadowAttack):
    """LiRA offline (arXiv 2112.03570, section VI): the one-sided test against shadows that never saw the point.

    Score: −log Pr[Z > φ], Z ~ N(μ_out, σ²_out), φ = log(p_y/(1 − p_y)), which orders as the paper's 1 − Pr[Z > φ] and
    does not round to 1. Variance pooled over points.

    Source: Carlini et al., arXiv 2112.03570, section VI.

    Deviations: no augmented queries.

    Cost: posteriors at the point; ``split.shadows`` models a pool, trained once for all of its targets, of which it
    reads the half that never saw the point.

    Not for: shadows of another recipe than the target: with a one-sided test its promised rate breaks soonest.
    """

    def scores(self, asked: Posteriors, shadows: Posteriors, half: Bools) -> Floats:
        """Return the surprise (A, K)."""
        return np.stack([surprise(row, shadows.confidence, ~half) for row in asked.confidence])

"""LiRA online: the likelihood ratio of members and non-members (Carlini et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Floats
from audits.mia.answers import Posteriors
from audits.mia.attacks.base import MIA_ATTACKS, ShadowAttack
from audits.signals.likelihood_ratio import log_likelihood_ratio


@MIA_ATTACKS.register("lira")
@dataclass(frozen=True)
class LiRA(ShadowAttack):
    """LiRA online (Carlini et al., arXiv 2112.03570): Gaussians of log(p_y/(1 − p_y)), per point, inside and outside.

    Score: log N(φ; μ_in, σ²_in) − log N(φ; μ_out, σ²_out), φ = log(p_y/(1 − p_y)). Variances are pooled over points, as
    the paper does with few shadows.

    Source: Carlini et al., arXiv 2112.03570, algorithm 1.

    Deviations: no augmented queries.

    Cost: posteriors at the point; ``split.shadows`` models a pool, trained once for all of its targets.

    Not for: shadows of another recipe than the target, with which its
    promised rate breaks.
    """

    def scores(self, asked: Posteriors, shadows: Posteriors, half: Bools) -> Floats:
        """Return the log-likelihood ratio (A, K)."""
        values, sides = np.stack([shadows.confidence] * 2), np.stack([half, ~half])
        return np.stack([log_likelihood_ratio(row, values, sides) for row in asked.confidence])

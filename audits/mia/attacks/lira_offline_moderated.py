"""LiRA offline with variances between a point's own and that of all points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Floats
from audits.mia.answers import Posteriors
from audits.mia.attacks.base import MIA_ATTACKS, ShadowAttack
from audits.signals.moderated import moderated_moments


@MIA_ATTACKS.register("lira_offline_moderated")
@dataclass(frozen=True)
class LiRAOfflineModerated(ShadowAttack):
    """LiRA offline (arXiv 2112.03570, section VI) with moderated variances (``audits.signals.moderated``).

    Score: −log Pr[Z > φ], Z ~ N(μ_out, σ²_out), φ = log(p_y/(1 − p_y)); σ²_out between the point's own variance and
    that of all points.

    Source: Carlini et al., arXiv 2112.03570, section VI; moderation as in ``audits.signals.moderated``.

    Deviations: the paper's variance is pooled with few shadows, a point's own with many; no augmented queries.

    Cost: posteriors at the point; ``split.shadows`` models a pool, trained once for all of its targets, of which it
    reads the half that never saw the point.

    Not for: decisions at a promised rate: it ranks a little better than ``lira_offline``, and recognises fewer members
    there, as points differ in how far models of other pools are from those of this one.
    """

    def scores(self, asked: Posteriors, shadows: Posteriors, half: Bools) -> Floats:
        """Return −log Pr[Z > φ] (A, K)."""
        from scipy.special import log_ndtr

        mean, variance = moderated_moments(shadows.confidence, ~half)
        found: Floats = -log_ndtr((mean - asked.confidence) / np.sqrt(variance))
        return found

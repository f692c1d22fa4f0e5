"""LiRA offline: how far above the models that never saw the point (Carlini et al., arXiv 2112.03570)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.attacks.base import Attack, Finding, Floats, attack
from audits.attacks.confidence import judged_outside, scaled
from audits.attacks.lira import moments
from audits.evidence.parts import Bools, Evidence
from audits.oracles import Access


@attack("lira_offline")
@dataclass(frozen=True)
class LiRAOffline(Attack):
    """Context: LiRA offline, the one-sided test against original shadows that never saw the point.

    Score: −log Pr[Z > φ], Z ~ N(μ_out, σ²_out), φ = log(p_y/(1 − p_y)) (arXiv 2112.03570, section VI, states
    1 − Pr[Z > φ]: the same order, which rounds to 1). Variance pooled over points. Deviation: the null judges
    unlearned shadows that never saw a point, each by all the others.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``."""
        seen = evidence.posterior()
        original = scaled(seen.original, seen.labels)

        def score(asked: Floats, kept: Bools) -> Floats:
            return surprise(asked, original[kept], seen.outside[kept])

        found = score(scaled(seen.target, seen.labels), np.ones(len(original), dtype=bool))
        null = judged_outside(scaled(seen.shadow, seen.labels), seen.outside, score)
        return Finding(found, null, seen.queries)


def surprise(asked: Floats, values: Floats, outside: Bools) -> Floats:
    """Return −log Pr[Z > asked] (K,) for Z normal as ``values`` (m, K) of the models ``outside`` (m, K)."""
    from scipy.special import log_ndtr

    mean, variance = moments(values, outside, pooled=True)
    found: Floats = -log_ndtr((mean - asked) / np.sqrt(variance))
    return found

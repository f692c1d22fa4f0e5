"""Likelihood-ratio attack on posteriors (LiRA; Carlini et al., arXiv 2112.03570)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.attacks.base import Attack, Finding, Floats, attack
from audits.attacks.evidence import Bools, Evidence
from audits.oracles import Access

SMALLEST_VARIANCE = 1e-6


@attack("lira")
@dataclass(frozen=True)
class LiRA(Attack):
    """LiRA online with pooled variances, on the model that is published: unlearned shadows stand for in and out.

    Per point, Gaussians over the logit-scaled confidence of unlearned shadows that had trained on it (then forgot it)
    and of those that never had; one variance a side, pooled over points, as arXiv 2112.03570 advises for few shadows.
    For ``identity`` this is LiRA itself. The null judges each shadow that never saw a point by all the other shadows.
    """

    access: ClassVar[Access] = "posteriors"

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``."""
        seen = evidence.posterior()
        null = [
            log_likelihood_ratio(own, np.delete(seen.shadow, i, 0), np.delete(seen.inside, i, 0))[~seen.inside[i]]
            for i, own in enumerate(seen.shadow)
        ]
        score = log_likelihood_ratio(seen.target, seen.shadow, seen.inside)
        return Finding(score, np.concatenate(null), seen.queries)


def log_likelihood_ratio(asked: Floats, shadow: Floats, inside: Bools) -> Floats:
    """Return log N(asked; μ_in, σ²_in) − log N(asked; μ_out, σ²_out) for K points.

    ``asked``: (K,); ``shadow``: (m, K) scaled confidences; ``inside``: (m, K). Means per point, variances pooled.
    """
    density = []
    for side in (inside, ~inside):
        count = side.sum(0)
        mean = np.where(side, shadow, 0.0).sum(0) / np.maximum(count, 1)
        spread = np.where(side, (shadow - mean) ** 2, 0.0).sum() / max(1, int((count - (count > 0)).sum()))
        variance = max(float(spread), SMALLEST_VARIANCE)
        density.append(-((asked - mean) ** 2) / (2 * variance) - 0.5 * np.log(variance))
    ratio: Floats = density[0] - density[1]
    return ratio

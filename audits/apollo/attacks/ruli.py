"""RULI's privacy game: unlearned against held out, by kernel densities per sample (Naderloui et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.outside import judged_alike
from audits.apollo.evidence.parts import Evidence
from audits.arrays import Bools, Floats
from audits.queries.access import Access
from audits.signals.confidence import scaled

BANDWIDTH = 1.0


@ATTACKS.register("ruli")
@dataclass(frozen=True)
class RULI(Attack):
    """RULI (Naderloui et al., arXiv 2506.13009, game 2; datasec-lab/Ruli, ``core/attack/unlearn_attack.py``).

    Score: log Q_u(φ) − log Q_h(φ), φ = log(p_y/(1 − p_y)); Q_u and Q_h are Gaussian kernel densities per sample, of
    bandwidth 1 as in the reference, over unlearned shadows that had the point and forgot it (u) and that never had it
    (held out, h). The reference's Q_u/(Q_u + Q_h) orders points alike.

    Source: Naderloui et al., arXiv 2506.13009, game 2, and its public code.

    Deviations: the shadows are halves (thirds with the retained, when the plan has such candidates) of a balanced
    design; φ is not clipped at 1e-6. The null judges each unlearned shadow that never saw a point by all the others.
    RULI's choice of vulnerable points is the plan's (``split.points``).

    Cost: posteriors at the point; ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: few shadows: a density per sample from a handful of values is noise, where ``u_lira`` pools its variances.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.posterior()
        shadow = scaled(seen.shadow, seen.labels)

        def score(asked: Floats, kept: Bools) -> Floats:
            unlearned, held_out = (log_density(asked, shadow[kept], side[kept]) for side in (seen.inside, seen.outside))
            return np.where(np.isfinite(unlearned) & np.isfinite(held_out), unlearned - held_out, 0.0)

        return judged_alike(scaled(seen.target, seen.labels), shadow, seen.outside, score, seen.queries)


def log_density(asked: Floats, values: Floats, side: Bools) -> Floats:
    """Return the log of the kernel density (K,) at ``asked`` (K,) of ``values`` (m, K) of the models ``side`` (m, K).

    −∞ where no model is on the side.
    """
    from scipy.special import logsumexp

    kernel = np.where(side, -0.5 * ((asked - values) / BANDWIDTH) ** 2, -np.inf)
    count = np.maximum(side.sum(0), 1)
    found: Floats = logsumexp(kernel, axis=0) - np.log(count * BANDWIDTH * np.sqrt(2 * np.pi))
    return found

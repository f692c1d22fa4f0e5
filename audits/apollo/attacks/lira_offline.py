"""LiRA offline: how far above the models that never saw the point (Carlini et al., arXiv 2112.03570)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.outside import judged_alike
from audits.apollo.evidence.parts import Evidence
from audits.arrays import Bools, Floats
from audits.queries.access import Access
from audits.signals.confidence import scaled
from audits.signals.likelihood_ratio import surprise


@ATTACKS.register("lira_offline")
@dataclass(frozen=True)
class LiRAOffline(Attack):
    """Context: LiRA offline, the one-sided test against original shadows that never saw the point.

    Question: Is the model more confident of the point than models that never saw it?

    Score: −log Pr[Z > φ], Z ~ N(μ_out, σ²_out), φ = log(p_y/(1 − p_y)); variance pooled over points.

    Source: Carlini et al., arXiv 2112.03570, section VI, which states 1 − Pr[Z > φ]: the same order, which rounds to 1.

    Deviations: the null judges unlearned shadows that never saw a point, each by all the others.

    Cost: posteriors at the point; ``split.shadows`` models trained and unlearned for each set of targets, of which it
    reads those that never saw the point.

    Not for: judging unlearning, as ``lira``; it cannot tell a method that lowers every confidence from one that
    forgets.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.posterior()
        original = scaled(seen.original, seen.labels)

        def score(asked: Floats, kept: Bools) -> Floats:
            return surprise(asked, original[kept], seen.outside[kept])

        target, shadow = scaled(seen.target, seen.labels), scaled(seen.shadow, seen.labels)
        return judged_alike(target, shadow, seen.outside, score, seen.queries)

"""U-LiRA with pooled variances: LiRA whose shadows have unlearned, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.lira import likelihood_ratio
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access
from audits.signals.confidence import scaled


@ATTACKS.register("u_lira")
@dataclass(frozen=True)
class ULiRA(Attack):
    """U-LiRA (Hayes et al., arXiv 2403.01218; Kurmanji et al., arXiv 2302.09880), variances pooled over points.

    Score: log N(φ; μ_in, σ²_in) − log N(φ; μ_out, σ²_out), φ = log(p_y/(1 − p_y)); in: unlearned shadows that had
    trained on the point and forgot it; out: unlearned shadows that never had it.

    Source: Hayes et al., arXiv 2403.01218; Kurmanji et al., arXiv 2302.09880; pooled variances as arXiv 2112.03570
    advises for few shadows.

    Deviations: one forget set per shadow that holds all its candidates, not one per candidate. The null judges each
    unlearned shadow that never saw a point by all the others, and the target in its place (``outside``).

    Cost: posteriors at the point; ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: labels alone; shadows of another recipe than the target, whose confidences are not comparable.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)
    pooled: ClassVar[bool] = True

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.posterior()
        shadow, target = scaled(seen.shadow, seen.labels), scaled(seen.target, seen.labels)
        sides = np.stack([seen.inside, seen.outside])
        return likelihood_ratio(target, shadow, np.stack([shadow, shadow]), sides, seen.queries, pooled=self.pooled)

"""U-MIA trained on unlearned shadows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import folds
from audits.apollo.attacks.u_mia import fit
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("u_mia_shadow")
@dataclass(frozen=True)
class UMIAShadow(Attack):
    """U-MIA (Kurmanji et al., arXiv 2302.09880) without members of the target: the SVC learns from unlearned shadows.

    Score: the mean distance from the boundaries of two SVCs (see ``u_mia.fit``), one a half of the pool, on posteriors
    in the order of the classes, neither sorted nor with the label. An SVC learns from the unlearned shadows of one
    half, at candidates that they forgot against candidates that they never saw; it judges the shadows of the other half
    and the target, at the candidates of the folds that it was not trained on. So it has met neither a judged model, nor
    its data, nor the judged point. Each half decides by a threshold of its own.

    Source: Kurmanji et al., arXiv 2302.09880.

    Deviations: in the reference beside Apollo the SVC learns from real members of the target (``u_mia_oracle``) and
    reads logits, where this kernel is below e⁻¹² between the answers of two models (fashion14), so that a fit to some
    says nothing about others.

    Cost: posteriors at the point; ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: finding single points: one boundary serves all of them, whatever is easy or hard.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.posterior()
        shadow, target = np.exp(seen.shadow.astype(np.float64)), np.exp(seen.target.astype(np.float64))
        first = np.arange(len(shadow)) < len(shadow) // 2
        parts = []
        for teach, judged in ((first, ~first), (~first, first)):
            score, null = np.empty(len(target)), np.empty((int(judged.sum()), len(target)))
            for own, others in folds(len(target)):
                known = (seen.inside | seen.outside)[np.ix_(teach, others)]
                judge = fit(shadow[np.ix_(teach, others)][known], seen.inside[np.ix_(teach, others)][known])
                score[own] = judge(target[own])
                null[:, own] = judge(shadow[np.ix_(judged, own)])
            parts.append((score, null[seen.outside[judged]]))
        return Finding.of_parts(parts, seen.queries)

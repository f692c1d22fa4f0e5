"""Likelihood-ratio attack on posteriors (LiRA; Carlini et al., arXiv 2112.03570)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.outside import judged_alike
from audits.apollo.evidence.parts import Evidence
from audits.arrays import Bools, Floats
from audits.queries.access import Access
from audits.signals.confidence import scaled
from audits.signals.likelihood_ratio import log_likelihood_ratio


@ATTACKS.register("lira")
@dataclass(frozen=True)
class LiRA(Attack):
    """Context: LiRA online by an auditor who does not model unlearning, on the model that is published.

    Question: Does an attack that knows nothing of unlearning still take the point for a member?

    Score: log N(φ; μ_in, σ²_in) − log N(φ; μ_out, σ²_out) of φ = log(p_y/(1 − p_y)), where in and out are *original*
    shadows, trained with and without the point, so that it equals ``u_lira`` for ``identity``; a shadow that keeps the
    point for good speaks for neither. Variances are pooled over points, as the paper advises for few shadows.

    Source: Carlini et al., arXiv 2112.03570, algorithm 1.

    Deviations: no augmented queries; the null judges unlearned shadows that never saw a point, each by all the others.

    Cost: posteriors at the point; ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: judging unlearning: it mistakes what unlearning does to every point for a trace. ``u_lira`` models it.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.posterior()
        original, unlearned, target = (
            scaled(answers, seen.labels) for answers in (seen.original, seen.shadow, seen.target)
        )
        return likelihood_ratio(
            target, unlearned, np.stack([original, original]), np.stack([seen.inside, seen.outside]), seen.queries
        )


def likelihood_ratio(
    target: Floats,
    null: Floats,
    values: Floats,
    sides: Bools,
    queries: NDArray[np.int32],
    *,
    pooled: bool = True,
    null_of: Bools | None = None,
) -> Finding:
    """Return the finding of a Gaussian likelihood ratio.

    ``target``: (K,) confidences of the target; ``null``: (m, K) of the unlearned shadows that stand for it in the
    null; ``values``: (2, m, K) of the shadows that say what inside and outside look like; ``sides``: (2, m, K);
    ``null_of``: (m, K), who makes up the null, where those outside are not all fit for it.
    """

    def score(asked: Floats, kept: Bools) -> Floats:
        return log_likelihood_ratio(asked, values[:, kept], sides[:, kept], pooled=pooled)

    return judged_alike(target, null, sides[1] if null_of is None else null_of, score, queries)

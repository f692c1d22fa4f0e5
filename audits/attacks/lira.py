"""Likelihood-ratio attack on posteriors (LiRA; Carlini et al., arXiv 2112.03570)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.attacks.base import Attack, Finding, Floats, attack
from audits.attacks.confidence import judged_outside, scaled
from audits.evidence.parts import Bools, Evidence
from audits.oracles import Access

SMALLEST_VARIANCE = 1e-6


@attack("lira")
@dataclass(frozen=True)
class LiRA(Attack):
    """Context: LiRA online by an auditor who does not model unlearning, on the model that is published.

    Score: log N(φ; μ_in, σ²_in) − log N(φ; μ_out, σ²_out) of φ = log(p_y/(1 − p_y)) (arXiv 2112.03570, algorithm 1),
    where in and out are *original* shadows, trained with and without the point, so that it equals ``u_lira`` for
    ``identity``; a shadow that keeps the point for good speaks for neither. Variances are pooled over points, as the
    paper advises for few shadows. Deviations: no augmented queries; the null judges unlearned shadows that never saw a
    point, each by all the others.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        """See ``Attack.find``."""
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
) -> Finding:
    """Return the finding of a Gaussian likelihood ratio.

    ``target``: (K,) confidences of the target; ``null``: (m, K) of the unlearned shadows that stand for it in the
    null; ``values``: (2, m, K) of the shadows that say what inside and outside look like; ``sides``: (2, m, K).
    """

    def score(asked: Floats, kept: Bools) -> Floats:
        return log_likelihood_ratio(asked, values[:, kept], sides[:, kept], pooled=pooled)

    everyone = np.ones(len(null), dtype=bool)
    return Finding(score(target, everyone), judged_outside(null, sides[1], score), queries)


def log_likelihood_ratio(asked: Floats, values: Floats, sides: Bools, *, pooled: bool = True) -> Floats:
    """Return log N(asked; μ_in, σ²_in) − log N(asked; μ_out, σ²_out) for K points.

    ``asked``: (K,); ``values``: (2, m, K) scaled confidences for inside and outside; ``sides``: (2, m, K), which of
    them count. Means per point; variances pooled over points, or per point.
    """
    density = []
    for value, side in zip(values, sides, strict=True):
        mean, variance = moments(value, side, pooled=pooled)
        density.append(-((asked - mean) ** 2) / (2 * variance) - 0.5 * np.log(variance))
    ratio: Floats = density[0] - density[1]
    return ratio


def moments(values: Floats, side: Bools, *, pooled: bool) -> tuple[Floats, Floats]:
    """Return mean (K,) and variance (K,) of ``values`` (m, K) over the models with ``side`` (m, K) set.

    Pooled variance: squared deviations from the points' means over the degrees of freedom of all points. Per point:
    the maximum-likelihood estimate; the pooled one stands in for points with fewer than two models. A point without
    any model takes the mean of the side. No variance is below ``SMALLEST_VARIANCE``.
    """
    count = side.sum(0)
    overall = values[side].mean() if side.any() else 0.0
    mean = np.where(count > 0, np.where(side, values, 0.0).sum(0) / np.maximum(count, 1), overall)
    squares = np.where(side, (values - mean) ** 2, 0.0).sum(0)
    shared = squares.sum() / max(1, int((count - (count > 0)).sum()))
    variance = np.full(mean.shape, shared) if pooled else np.where(count > 1, squares / np.maximum(count, 1), shared)
    return mean, np.maximum(variance, SMALLEST_VARIANCE)

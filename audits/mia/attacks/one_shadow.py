"""One shadow: how far a model's answer has moved from a shadow's towards a perfect fit (Wang et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.mia.answers import Case
from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding, against_known

STEPS = 100
SHIFT, FLOOR = 1e-2, 1e-5
"""Of the signal −log(SHIFT − log(p + FLOOR)); at p = 1 it is the perfect fit."""


@MIA_ATTACKS.register("one_shadow")
@dataclass(frozen=True)
class OneShadow(Attack):
    """Scoring of IAM (Wang et al., arXiv 2506.06112) for membership: between one shadow's answer and a perfect fit.

    Score: signal: minus the log of the loss. On the way from the shadow's signal at the point to that of p = 1, in
    ``STEPS`` steps, each step is a Gumbel distribution around the signal reached (its spread: that of the shadow's
    signals over known non-members, shrinking as the way is gone). The score is the mean over steps of the probability
    to lie below the model's own signal, later steps weighing more.

    Source: Wang et al., arXiv 2506.06112; the formulas follow the paper's public code.

    Deviations: IAM measures how completely a point was *unlearned*, with the original model's answer in the place of
    the perfect fit where there is one. Here the shadow is one pair of twins, of which the one that never saw the point
    answers; at known non-members, where both are outside, they take turns.

    Cost: posteriors at the point; one pair of shadows a pool.

    Not for: runs that have shadows anyway, which ``lira`` and ``rmia`` use.
    """

    shadows: ClassVar[int] = 2

    def find(self, case: Case) -> Finding:
        """Return the mean probability (T, K)."""
        seen = case.known_posteriors(self.name)
        shadows, half = case.known_shadows(self.name)
        first, second = signal(shadows.log_p[0]), signal(shadows.log_p[1])
        outside = np.where(half[0], second, first)
        known = signal(shadows.known_log_p[:2])
        turns = np.where(np.arange(known.shape[1]) % 2, known[1], known[0])
        spread = float(known.std())
        return against_known(
            interpolated(signal(seen.log_p), outside, spread), interpolated(signal(seen.known_log_p), turns, spread)
        )


def signal(log_p: NDArray[Any]) -> Floats:
    """Return −log(SHIFT − log(p + FLOOR)) of log-probabilities, p + FLOOR no more than 1."""
    found: Floats = -np.log(SHIFT - np.log(np.minimum(np.exp(log_p) + FLOOR, 1.0)))
    return found


def interpolated(asked: Floats, reference: Floats, spread: float) -> Floats:
    """Return the weighted mean over steps (A, K) of the Gumbel distribution function at ``asked`` (A, K).

    ``reference`` (K,): the shadow's signals; ``spread``: their standard deviation. Gumbel by the method of moments:
    scale √6·σ/π, mode at the mean minus γ times the scale.
    """
    top = -np.log(SHIFT)
    total, weights = np.zeros_like(asked), 0.0
    for step in range(STEPS - 1):
        gone, weight = step / (STEPS - 1), (step + 1) / (STEPS - 1)
        mean = reference + gone * (top - reference)
        scale = np.sqrt(6.0) * max((1.0 - gone) * spread, 1e-12) / np.pi
        z = (asked - mean + np.euler_gamma * scale) / scale
        total += weight * np.exp(-np.exp(np.clip(-z, -700.0, 700.0)))
        weights += weight
    return total / weights

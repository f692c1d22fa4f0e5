"""RMIA: is a point likelier under the model than points of the population are (Zarifzadeh et al. 2024)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.arrays import Bools, Floats
from audits.mia.answers import Posteriors
from audits.mia.attacks.base import MIA_ATTACKS, ShadowAttack
from audits.signals.rmia import dominance, evidence_of, log_mean

POPULATION = 500
"""Known non-members that stand for the population, at most: evenly spaced ones, as data sets may be sorted by class."""


@MIA_ATTACKS.register("rmia")
@dataclass(frozen=True)
class RMIA(ShadowAttack):
    """RMIA online (Zarifzadeh et al., arXiv 2312.03262): a point against points of the population, by likelihood ratio.

    Score: the mean over z of LR/(LR + γ), γ = 1, the soft form of the paper's share of z; LR(x, z) = (p(x|θ)/p(x)) /
    (p(z|θ)/p(z)), p being the probability of the true class; p(x): half its mean over the shadows inside, half over
    those outside; p(z): its mean over all shadows, which never saw z.

    Source: Zarifzadeh et al., arXiv 2312.03262.

    Deviations: no augmented queries, and the softmax has temperature 1; ``rmia_softened`` has the paper's.

    Cost: posteriors at the point and at test points; ``split.shadows`` models a pool, trained once for all of its
    targets.

    Not for: labels alone, or where no points can be spared for the population.
    """

    temperature: ClassVar[float] = 1.0

    def expected(self, shadows: Posteriors, half: Bools) -> Floats:
        """Return log p(x) (K,) by the shadows."""
        return evidence_of(shadows.at(self.temperature)[0], np.stack([half, ~half]))

    def scores(self, asked: Posteriors, shadows: Posteriors, half: Bools) -> Floats:
        """Return the mean of LR/(LR + γ) (A, K)."""
        reference, (here, there) = shadows.at(self.temperature)[1], asked.at(self.temperature)
        step = -(-reference.shape[1] // POPULATION)
        reference = reference[:, ::step]
        population = there[:, ::step] - log_mean(reference, np.ones(reference.shape, bool))
        own = here - self.expected(shadows, half)
        return np.stack([dominance(*pair) for pair in zip(own, population, strict=True)])

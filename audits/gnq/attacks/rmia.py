"""RMIA: is a point likelier under the target than the other points of the pool are (Zarifzadeh et al. 2024)?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Floats, Labels
from audits.gnq.answers import PoolAnswers
from audits.gnq.attacks.base import POOL_ATTACKS, PoolAttack, needed
from audits.signals.loss import minus_loss
from audits.signals.rmia import dominance, evidence_of, log_mean


@POOL_ATTACKS.register("rmia")
@dataclass(frozen=True)
class PoolRMIA(PoolAttack):
    """RMIA online (Zarifzadeh et al., arXiv 2312.03262) with the shadows as references.

    Score: the mean over z of LR/(LR + γ), γ = 1, LR(x, z) = (p(x|θ)/p(x)) / (p(z|θ)/p(z)), p being the probability of
    the true class and p(x) half its mean over the group's shadows inside, half over those outside (over all shadows
    where the group has none of either). Behind a removal the contributors inside are those kept and those dropped, so
    p(x) needs no mixture beside it.

    Source: Zarifzadeh et al., arXiv 2312.03262.

    Deviations: z runs over the points of the pool, x among them, as the models answered no others (half of them are
    members; within a target the order of points, which is all that an AUC reads, does not depend on z); the soft form
    of the paper's share of z; no augmented queries.

    Cost: posteriors at the points; ``split.shadows`` models a pool, trained again behind each defence.

    Not for: labels alone.
    """

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """Return the mean of LR/(LR + γ) (T, 2n)."""
        known = needed(shadows, self.name)
        seen, sides = minus_loss(known.logits, labels), np.stack(known.sides(group))
        everyone = log_mean(seen, np.ones_like(sides[0]))
        expected = np.where(sides.any((0, 1)), evidence_of(seen, sides), everyone)
        ratios = minus_loss(targets.logits, labels) - expected
        return np.stack([dominance(own, own) for own in ratios])

"""Loss: members have a smaller one (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.arrays import Floats, Labels
from audits.gnq.answers import PoolAnswers
from audits.gnq.attacks.base import POOL_ATTACKS, PoolAttack
from audits.signals.loss import minus_loss


@POOL_ATTACKS.register("loss")
@dataclass(frozen=True)
class LossThreshold(PoolAttack):
    """Minus the loss (Yeom et al., arXiv 1709.01604): no shadows.

    Score: log p_y.

    Source: Yeom et al., arXiv 1709.01604.

    Deviations: no threshold, since an AUC needs none.

    Cost: posteriors at the points; nothing is trained for it.

    Not for: hard points, which have a large loss whether or not they were trained on.
    """

    shadowed: ClassVar[bool] = False

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """Return log p_y (T, 2n)."""
        return minus_loss(targets.logits, labels)

"""A classifier of what the weights show of a point (after Nasr et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from audits.arrays import Labels
from audits.errors import BadInput
from audits.gnq.answers import PoolAnswers
from audits.gnq.attacks.base import POOL_ATTACKS, PoolAccess
from audits.gnq.attacks.learned import LearnedAttack


@POOL_ATTACKS.register("white_box")
@dataclass(frozen=True)
class WhiteBox(LearnedAttack):
    """Classifier of loss, gradient norms by layer, last activations and logits (after Nasr et al., arXiv 1812.00910).

    Score: the classifier's probability of "member" given ``PoolAnswers.features``, as
    :func:`audits.gradients.white_box.white_box_features` makes them.

    Source: Nasr et al., arXiv 1812.00910.

    Deviations: norms in place of gradients, boosted trees in place of a network. It learns from shadows, whose units
    need not correspond to the target's, where the paper's attacker knows some members of the target itself.

    Cost: the weights of the models: a backward pass a point and model; ``split.shadows`` models a pool, trained again
    behind each defence, and one fit.

    Not for: attackers who see answers alone.
    """

    access: ClassVar[PoolAccess] = "white_box"

    def features(self, answers: PoolAnswers, labels: Labels) -> NDArray[Any]:
        if answers.features is None:
            raise BadInput(
                f"attack {self.name} reads features of the weights, which are missing; make them with "
                f"white_box_features, or leave {self.name} out"
            )
        return answers.features

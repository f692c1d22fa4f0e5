"""White box: a network on loss, gradients and activations, layer by layer (Nasr et al., S&P 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from audits.tmia.answers import JUDGED, Answers, AttackAccess
from audits.tmia.attacks.base import ATTACKS, Attack, JudgeSettings, Reading, Ruling
from audits.tmia.attacks.network import Network
from audits.tmia.attacks.shadows import Verdict, balanced, everyone, ruled


@ATTACKS.register("nasr")
@dataclass(frozen=True)
class Nasr(Attack):
    """ "Comprehensive Privacy Analysis of Deep Learning" (arXiv 1812.00910), passive attack on a stand-alone model.

    Score: the probability of "member" by a network on ``audits.tmia.white_box.nasr_features``, which says how these
    deviate. Features are centred and scaled by the rows that it learns from.

    Source: Nasr et al., arXiv 1812.00910.

    Deviations: it learns from the reference models that were looked into, at points of the attacker's: the paper's
    attacker knows part of the target's own training set, which is not granted here. The network is that of GMIA, of one
    hidden layer, in place of a component a layer and an encoder.

    Cost: the weights of the models: forward and backward passes a candidate and model; one fit;
    ``split.reference_models`` models, which serve all targets and candidates.

    Not for: attackers who see answers alone, and a promised rate: it makes none.
    """

    access: ClassVar[AttackAccess] = "white_box"
    reads: ClassVar[tuple[Reading, ...]] = ("white_box",)

    network: Network = field(default_factory=lambda: Network(learning_rate=1e-3))

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling; the statistic is the network's log-odds of "member"."""
        seen = view.known_white_box()
        taken = balanced(seen.shadow_member, len(seen.shadow_member), seed)
        rows, member = seen.shadow_features[taken].astype(np.float64), seen.shadow_member[taken]
        mean, scale = rows.mean(0), rows.std(0)
        scale[scale == 0] = 1.0
        judge = self.network.fitted((rows - mean) / scale, member, seed)
        asked = np.concatenate([seen.features[group] for group in JUDGED]).astype(np.float64)
        score = judge((asked - mean) / scale)
        verdict = Verdict(score > 0, score, everyone(score))
        return ruled(verdict, np.arange(score.shape[1]), len(seen.features["target"]))

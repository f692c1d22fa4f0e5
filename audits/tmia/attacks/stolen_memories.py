"""White box without the training data: how a model's head differs from a proxy (Leino and Fredrikson, USENIX 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.arrays import Bools, Floats
from audits.tmia.answers import JUDGED, Answers, AttackAccess
from audits.tmia.attacks.base import ATTACKS, Attack, JudgeSettings, Reading, Ruling
from audits.tmia.attacks.shadows import Verdict, balanced, everyone, ruled


@ATTACKS.register("stolen_memories")
@dataclass(frozen=True)
class StolenMemories(Attack):
    """ "Stolen Memories" (arXiv 1906.11798): member if the head speaks for the point's class more than a proxy does.

    Score: the displacement of the head against a proxy's at the point (``audits.tmia.white_box.displacement``, which
    says how it deviates).

    Source: Leino and Fredrikson, "Stolen Memories", USENIX Security 2020, arXiv 1906.11798, ``bayes-wb``.

    Deviations: the paper's ``bayes-wb`` calls what is above 0; as in its calibrated form the threshold is read off
    shadows: of the reference models' values at points of the attacker's, balanced, the one that calls most of them
    rightly.

    Cost: the weights of the models: a forward pass a candidate; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: attackers who see answers alone; modes in which the true class is not known; a promised rate: it makes
    none.
    """

    access: ClassVar[AttackAccess] = "white_box"
    reads: ClassVar[tuple[Reading, ...]] = ("white_box",)
    needs_true_label: ClassVar[bool] = True

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling; the statistic is the displacement."""
        seen = view.known_white_box()
        taken = balanced(seen.shadow_member, len(seen.shadow_member), seed)
        threshold = best_threshold(seen.shadow_displacement[taken], seen.shadow_member[taken])
        score = np.concatenate([seen.displacement[group] for group in JUDGED])
        verdict = Verdict(score > threshold, score, everyone(score))
        return ruled(verdict, np.arange(score.shape[1]), len(seen.displacement["target"]))


def best_threshold(values: Floats, member: Bools) -> float:
    """Return the threshold above which calling "member" is right most often: halfway to the next value, the least.

    ``values`` and ``member``: (N,). Where calling everybody or nobody is best, it is −∞ or the largest value.
    """
    order = np.argsort(values, kind="stable")
    ranked, flags = values[order], member[order]
    right = np.concatenate([[0], np.cumsum(~flags)]) + np.concatenate([np.cumsum(flags[::-1])[::-1], [0]])
    apart = np.concatenate([[True], ranked[1:] > ranked[:-1], [True]])
    place = int(np.argmax(np.where(apart, right, -1)))
    if place == 0:
        return -np.inf
    return float(ranked[-1] if place == len(ranked) else (ranked[place - 1] + ranked[place]) / 2)

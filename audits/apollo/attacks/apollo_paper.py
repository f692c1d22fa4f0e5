"""Apollo's own decision rule, for comparison: thresholds on the shadows' mean confidence along the walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.evidence.parts import Evidence, Walks
from audits.arrays import Bools, Floats
from audits.queries.access import Access

THRESHOLDS = np.linspace(0.02, 0.98, 49)


@ATTACKS.register("apollo_paper")
@dataclass(frozen=True)
class ApolloPaper(Attack):
    """Apollo online with the rule of the paper (arXiv 2506.09923, section 5), swept over a fixed grid of τ.

    UNDER: at the first step where the mean out-shadow confidence is below τ (else the last), "forgotten" iff the label
    is y. OVER: at the first step where it is above τ (else the last), "forgotten" iff it is not y. The score is the
    share of (τ, rule) that say "forgotten", so that it can stand beside continuous scores; what the paper reports, the
    best τ on the evaluated points, is ``best_threshold`` and is shown with its permutation band only.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("apollo",)

    def find(self, evidence: Evidence) -> Finding:
        walks = evidence.walk("apollo")
        scores = [
            decisions(target, mean).mean((0, 1)) for target, mean in zip(walks.target, walks.confidence, strict=True)
        ]
        nulls = [
            np.stack([decisions(model, mean).mean((0, 1)) for model in pseudo])[outside]
            for pseudo, mean, outside in zip(walks.pseudo, walks.confidence, walks.outside, strict=True)
        ]
        parts = tuple(zip(scores, nulls, strict=True))
        return Finding(said(walks).mean((0, 1)), np.concatenate(nulls), walks.queries, parts)


def said(walks: Walks) -> Floats:
    """Return (2, τ, K): for UNDER and OVER and each τ, the share of the two walks along which "forgotten" is said."""
    both = [decisions(target, mean) for target, mean in zip(walks.target, walks.confidence, strict=True)]
    shares: Floats = np.mean(both, axis=0)
    return shares


def decisions(says_true: Bools, confidence: Floats, thresholds: Floats = THRESHOLDS) -> NDArray[np.bool_]:
    """Return (2, τ, K) bool "forgotten" by UNDER and OVER of answers (K, 1 + 2T) and confidences (K, 2, T)."""
    steps = confidence.shape[-1]
    rows = np.arange(len(confidence))
    found = []
    for way, crossed in enumerate((np.less, np.greater)):
        answers = says_true[:, 1 + way * steps : 1 + (way + 1) * steps]
        hit = crossed(confidence[None, :, way], thresholds[:, None, None])
        first = np.where(hit.any(-1), hit.argmax(-1), steps - 1)
        label = answers[rows[None], first]
        found.append(label if way == 0 else ~label)
    return np.stack(found)


def best_threshold(said_forgotten: Floats, forgotten: Bools) -> float:
    """Return the largest balanced accuracy over rules and τ: the paper's optimistic number, picked on the truth.

    ``said_forgotten``: (2, τ, K) from ``said``; ``forgotten``: (K,) bool.
    """
    rates = said_forgotten[..., forgotten].mean(-1) - said_forgotten[..., ~forgotten].mean(-1)
    return float(0.5 + rates.max() / 2)

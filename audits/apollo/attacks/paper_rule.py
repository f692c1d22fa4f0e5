"""The paper's own decision rules UNDER and OVER: a threshold τ on the shadows' mean confidence along the walk.

Source: Apollo (arXiv 2506.09923), section 5. UNDER looks for a boundary that moved too little: at the first step where
the mean out-shadow confidence is below τ (else the last) it says "forgotten" iff the label is y. OVER looks for one
that moved too far: at the first step where that confidence is above τ (else the last) it says "forgotten" iff the label
is not y. They are two attacks: near a point that the target still remembers the first says "forgotten" and the second
does not, so a mean of both votes cancels what either finds.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks.base import Finding
from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools, Floats

Way = Literal[0, 1]
UNDER: Way = 0
OVER: Way = 1
THRESHOLDS = np.linspace(0.02, 0.98, 49)


def by_rule(walks: Walks, way: Way) -> Finding:
    """Return the finding of one rule: the share of τ of a fixed grid that say "forgotten", walk by walk.

    The null are pseudo-targets that never saw the point. What the paper reports, the best τ on the judged points, is
    the largest of ``balanced_accuracies`` and is shown with its permutation band only.
    """
    parts = []
    for target, pseudo, mean, outside in zip(walks.target, walks.pseudo, walks.confidence, walks.outside, strict=True):
        null = np.stack([decisions(model, mean)[way].mean(0) for model in pseudo])[outside]
        parts.append((decisions(target, mean)[way].mean(0), null))
    return Finding.of_parts(parts, walks.queries)


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
        found.append(label if way == UNDER else ~label)
    return np.stack(found)


def balanced_accuracies(said_forgotten: Floats, forgotten: Bools) -> Floats:
    """Return the balanced accuracy (τ,) of one rule at every τ; its largest is picked on the truth, as in the paper.

    ``said_forgotten``: (τ, K), one rule of ``said``; ``forgotten``: (K,) bool.
    """
    rates: Floats = said_forgotten[..., forgotten].mean(-1) - said_forgotten[..., ~forgotten].mean(-1)
    return 0.5 + rates / 2

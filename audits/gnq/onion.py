"""The onion effect: points that become exposed once more exposed ones are gone (Carlini et al., arXiv 2206.10469).

It shows in the tail: the mean AUC hides it. A point counts as fully exposed when every model that was trained on it is
more confident of its label than every model that was not. That happens by chance the more often the fewer the models
are, and removal leaves fewer models that hold a point; so the share is estimated for equally many models before and
after, and stands beside the share that chance alone gives (2·4 models: 1/70 = .014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.gnq.answers import PoolAnswers, compared
from audits.signals.confidence import scaled


@dataclass(frozen=True)
class Onion:
    """Shares of fully exposed points among those that a target kept, before and after the removal.

    ``points``: how many were judged; ``left_out``: those with too few models on a side; ``floor``: the share by chance,
    where membership leaves no trace. ``before``, ``after``: means over the points, NaN without any. ``each`` (2, 2n)
    float64: before and after by point, NaN where not judged.
    """

    points: int
    left_out: int
    before: float
    after: float
    floor: float
    each: Floats


def onion(before: PoolAnswers, after: PoolAnswers, labels: NDArray[np.int64], kept: Bools, models: int = 4) -> Onion:
    """Return how many of the points ``kept`` (2n,) bool are fully exposed ``before`` and ``after`` the removal.

    ``kept``: the points that the targets kept (both twins' together), which shadows have no part in choosing.
    ``before``: shadows that removed nothing; ``after``: shadows that ran the pipeline. A model that removed a point
    counts on neither side. Two sets of ``before`` give the difference that shadows alone make; removal at ``random``
    the one that fewer points make. ``models``: see ``exposure``. Raises BadInput for pools that do not fit.
    """
    if before.half.shape[1:] != kept.shape or after.half.shape[1:] != kept.shape or kept.dtype != bool:
        raise BadInput(
            f"kept is {kept.dtype} {kept.shape}, the models are asked about {before.half.shape[1]} and "
            f"{after.half.shape[1]} points; give bool, one for each point of one pool"
        )
    each = np.stack(
        [
            exposure(scaled(shadows.logits, labels), *compared(shadows.half, shadows.kept, "kept_unfiltered"), models)
            for shadows in (before, after)
        ]
    )
    each[:, ~kept | np.isnan(each).any(0)] = np.nan
    judged = ~np.isnan(each[0])
    first, second = each[:, judged].mean(1) if judged.any() else (np.nan, np.nan)
    left_out = int(kept.sum() - judged.sum())
    return Onion(int(judged.sum()), left_out, float(first), float(second), 1 / math.comb(2 * models, models), each)


def exposure(confidence: Floats, inside: Bools, outside: Bools, models: int = 4) -> Floats:
    """Return P(``models`` models inside are all more confident than ``models`` models outside), (N,) float64 by point.

    ``confidence`` (M, N) of M models, of which those ``inside`` (M, N) bool were trained on a point and those
    ``outside`` were not. The mean over all choices of that many models, without drawing any: unbiased for every M. NaN
    for points with fewer on a side. Equal confidences count as not exposed. Raises BadInput for shapes that do not fit,
    models on both sides and ``models`` below 1.
    """
    from scipy.special import comb

    if models < 1:
        raise BadInput(f"models is {models}; it must be 1 or more (on either side)")
    if not confidence.shape == inside.shape == outside.shape or (inside & outside).any() or np.isnan(confidence).any():
        raise BadInput(
            f"confidence {confidence.shape}, inside {inside.shape} and outside {outside.shape}: allowed are numbers "
            "(models, points) and two masks that share nothing"
        )
    choices = comb(np.arange(len(confidence) + 1), models)
    below = comb(np.arange(len(confidence) + 1), models - 1)  # ways to choose the others, all less confident than one
    rank = np.where(outside, confidence, np.inf).argsort(0, kind="stable").argsort(0, kind="stable")
    ways = np.zeros(confidence.shape[1])
    for model, most in enumerate(confidence):
        above = (inside & (confidence > most)).sum(0)
        ways += np.where(outside[model], below[rank[model]] * choices[above], 0.0)
    total = choices[inside.sum(0)] * choices[outside.sum(0)]
    found: Floats = np.divide(ways, total, out=np.full(len(total), np.nan), where=total > 0)
    return found

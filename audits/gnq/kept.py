"""The points that each of two twins keeps of its half of a pool when it drops those on top.

What one twin keeps are non-members of the other that went through the same rule (``removal``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Bools
from audits.errors import BadInput


def kept_points(half: Bools, scores: ArrayLike, share: float) -> Bools:
    """Return which points (M, 2n) each model keeps: all of its ``half`` but the round(share·n) of highest score.

    ``scores`` (M, 2n): each model's ranking of its own points; those of others are not read. A half ends between two
    integers: Python's round, to the even one. Of equal scores the first in the pool are removed. Raises BadInput for a
    share outside [0, 1), shapes that do not fit, scores that are not numbers, and where nobody is left.
    """
    ranked = np.asarray(scores, np.float64)
    if half.ndim != 2 or half.dtype != bool or ranked.shape != half.shape:
        raise BadInput(f"half is {half.dtype} {half.shape} and scores {ranked.shape}; allowed: bool (models, points)")
    if not 0 <= share < 1:
        raise BadInput(f"share is {share}; allowed: 0 up to, but not including, 1 (of a model's points to remove)")
    if np.isnan(ranked[half]).any():
        raise BadInput("scores of a model's own points are not numbers; rank each point that it trains on")
    kept = half.copy()
    for model, row in enumerate(ranked):
        own = np.flatnonzero(half[model])
        removed = round(share * len(own))
        if removed == len(own):
            raise BadInput(f"share is {share}, which removes all {len(own)} points of model {model}; remove fewer")
        kept[model, own[np.argsort(-row[own], kind="stable")[:removed]]] = False
    return kept

"""Rank correlation of a score with an outcome, target by target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from audits.arrays import Bools, Floats
from audits.errors import BadInput


def spearman(score: ArrayLike, outcome: ArrayLike, half: Bools | None = None) -> Floats:
    """Return Spearman's rank correlation (T,) of a score with an outcome over each target's own points.

    ``score`` and ``outcome`` (T, N), or (N,) where they are the same for all targets; ``half`` (T, N) bool: each
    target's own points, by default those that have a score (T, N); others are not read. Equal values share their mean
    rank. NaN for a target whose own points are all equal in either. Raises BadInput for shapes that do not fit and own
    points without a number.
    """
    half = ~np.isnan(np.asarray(score, np.float64)) if half is None else half
    scores, outcomes = own_values("score", score, half), own_values("outcome", outcome, half)
    found = np.full(len(half), np.nan)
    for target, own in enumerate(half):
        one, other = (rankdata(values[target, own]) for values in (scores, outcomes))
        one, other = one - one.mean(), other - other.mean()
        size = np.sqrt((one @ one) * (other @ other))
        if size > 0:
            found[target] = one @ other / size
    return found


def own_values(name: str, values: ArrayLike, half: Bools) -> Floats:
    """Return ``values`` as (T, N) float64; BadInput when they do not fit ``half`` or have no number where it is set."""
    found = np.asarray(values, np.float64)
    if half.ndim != 2 or half.dtype != bool or found.shape not in (half.shape, half.shape[1:]):
        raise BadInput(
            f"{name} has shape {found.shape} and half is {half.dtype} {half.shape}; allowed: (points,) or (targets, "
            "points), and bool (targets, points)"
        )
    found = np.broadcast_to(found, half.shape)
    if np.isnan(found[half]).any():
        raise BadInput(f"{name} is not a number for {int(np.isnan(found[half]).sum())} points; give each point a value")
    return found

"""Permutation p-values of an AUC without permuting: for tables too large to be drawn again thousands of times."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.statistics.judged import rows_by
from audits.statistics.null import permutation_p

FEWEST = 50
"""Members, and non-members, from which on the sum of their ranks is taken to be normal."""


MOST_STEPS = 100_000_000
"""Labels drawn, of all targets together, up to which membership is permuted."""


def permutation_p_of(
    scores: ArrayLike,
    member: ArrayLike,
    cluster: ArrayLike,
    *,
    draws: int,
    seed: int,
    groups: ArrayLike | None = None,
    together: tuple[ArrayLike, ArrayLike] | None = None,
) -> Floats:
    """Return the p-values of ``permutation_p``, from their normal limit where that takes ``MOST_STEPS`` or more.

    Draws cost ``draws`` · n steps and as many bytes a target; p-values of draws are never below 1/(1 + draws).
    """
    flags = np.asarray(member).astype(bool)
    few = min(int(flags.sum()), int((~flags).sum())) < FEWEST
    if few or groups is not None or together is not None or flags.size * draws < MOST_STEPS:
        return permutation_p(scores, member, cluster, draws=draws, seed=seed, groups=groups, together=together)
    return limit_p(scores, flags, cluster)


def limit_p(scores: ArrayLike, member: ArrayLike, cluster: ArrayLike) -> Floats:
    """Return two-sided p-values of the mean within-target AUC against ½, one for each column of scores (n, k).

    Under permutation of membership within a target the sum of the members' ranks has mean and variance that are known
    exactly, ties included; the sum over targets is normal in the limit.
    """
    from scipy.special import ndtr
    from scipy.stats import rankdata

    columns = np.atleast_2d(np.asarray(scores, dtype=np.float64).T).T
    flags = np.asarray(member).astype(bool)
    found, variance = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    for rows in rows_by(np.asarray(cluster)):
        ranks, own = rankdata(columns[rows], axis=0), flags[rows]
        size, inside = own.size, int(own.sum())
        outside = size - inside
        apart = ranks - (size + 1) / 2.0
        found += apart[own].sum(axis=0) / (inside * outside)
        variance += (apart**2).sum(axis=0) / (size * (size - 1)) / (inside * outside)
    far = np.abs(found) / np.sqrt(np.where(variance > 0, variance, 1.0))
    return np.asarray(2.0 * ndtr(-far))

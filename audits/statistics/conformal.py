"""Decisions and p-values from scores of models of which it is known that they never saw a point."""

from __future__ import annotations

import numpy as np

from audits.arrays import Floats


def decided(score: Floats, null: Floats, rate: float) -> Floats:
    """Return the probability (K,) of saying "forgotten": that the smoothed conformal p-value is at most ``rate``.

    p = (#{null > s} + U·(1 + #{null = s})) / (1 + N) with U uniform (Vovk, Gammerman and Shafer, Algorithmic Learning
    in a Random World, 2005): of scores exchangeable with the null exactly ``rate`` are called forgotten, whatever N and
    the ties. A threshold with a share ``rate`` of the null above it keeps less than it promises, by up to 1/N: a new
    score lies above the second largest of 1 200 with probability 2/1201, though only 1/1200 of these do. Where
    "forgotten" begins is settled by null scores alone, so it stands before any target has been asked.
    """
    ordered = np.sort(null)
    not_above = np.searchsorted(ordered, score, side="right")
    tied = not_above - np.searchsorted(ordered, score, side="left")
    share = (rate * (ordered.size + 1) - (ordered.size - not_above)) / (1 + tied)
    return np.clip(share, 0.0, 1.0)


def p_values(score: Floats, null: Floats) -> Floats:
    """Return (1 + #{null ≥ score}) / (1 + N) for every score (K,) of N null scores.

    Never 0, and P(p ≤ a) ≤ a for a score exchangeable with the null (a conformal p-value); equal scores count as null,
    so ties cost power and never validity, and no point is exposed by a coin.
    """
    ordered = np.sort(null)
    return np.asarray((1 + ordered.size - np.searchsorted(ordered, score, side="left")) / (1 + ordered.size))

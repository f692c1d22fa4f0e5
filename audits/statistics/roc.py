"""Receiver operating characteristics of membership scores: higher score = more likely a member (a forgotten point)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.statistics.judged import rows_by

EXPECTED_FALSE_POSITIVES = 10


@dataclass(frozen=True)
class Roc:
    """Vertices of a ROC curve, from (0, 0) to (1, 1); points of equal score share one vertex.

    ``thresholds[i]`` is the lowest score called "member" at vertex i (+inf at the first). On the straight line between
    two vertices lie the tests that draw lots among the points whose score is exactly the next threshold.
    """

    fpr: Floats
    tpr: Floats
    thresholds: Floats


def as_scores(scores: ArrayLike, member: ArrayLike) -> tuple[Floats, Bools]:
    """Return float64 scores and bool membership (n,); raise BadInput unless they pair up and hold both groups."""
    values = np.asarray(scores, dtype=np.float64)
    flags = np.asarray(member).astype(bool)
    if values.ndim != 1 or values.shape != flags.shape:
        raise BadInput(f"scores {values.shape} and membership {flags.shape} must be two vectors of equal length")
    if np.isnan(values).any():
        raise BadInput(f"{int(np.isnan(values).sum())} of {values.size} scores are not a number")
    if not flags.any() or flags.all():
        raise BadInput(f"scores of both groups are needed, got {int(flags.sum())} members among {flags.size} points")
    return values, flags


def roc(scores: ArrayLike, member: ArrayLike) -> Roc:
    """Return the empirical ROC of ``scores`` (n,) against ``member`` (n,), one vertex for each distinct score."""
    values, flags = as_scores(scores, member)
    distinct, position = np.unique(values, return_inverse=True)
    hits = np.bincount(position, weights=flags, minlength=distinct.size)[::-1]
    alarms = np.bincount(position, weights=~flags, minlength=distinct.size)[::-1]
    return Roc(
        fpr=np.concatenate([[0.0], np.cumsum(alarms) / alarms.sum()]),
        tpr=np.concatenate([[0.0], np.cumsum(hits) / hits.sum()]),
        thresholds=np.concatenate([[np.inf], distinct[::-1]]),
    )


def auc(scores: ArrayLike, member: ArrayLike) -> float:
    """Return P(score of a member > score of a non-member) + ½ P(equal): the Mann–Whitney statistic over all pairs."""
    values, flags = as_scores(scores, member)
    return float(wins(values[flags], values[~flags]) / (flags.sum() * (~flags).sum()))


def wins(members: Floats, others: Floats) -> float:
    """Count the pairs in which the member scores higher; a tie counts one half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, side="left")
    not_above = np.searchsorted(ordered, members, side="right")
    return float((below + not_above).sum() / 2)


def pairwise_wins(scores: ArrayLike, member: ArrayLike, cluster: ArrayLike) -> tuple[Floats, Floats]:
    """Return (wins, pairs), both (G, G): members of cluster g against non-members of cluster h.

    The AUC of scores pooled over clusters taken w_g times each is wᵀ·wins·w / wᵀ·pairs·w, which makes resampling of
    clusters a quadratic form. The diagonal holds the within-cluster AUCs.
    """
    values, flags = as_scores(scores, member)
    groups = np.asarray(cluster)
    names = np.unique(groups)
    inside = [values[(groups == name) & flags] for name in names]
    outside = [values[(groups == name) & ~flags] for name in names]
    won = np.array([[wins(own, other) for other in outside] for own in inside])
    pairs = np.array([[float(own.size * other.size) for other in outside] for own in inside])
    return won, pairs


def within_auc(scores: ArrayLike, member: ArrayLike, cluster: ArrayLike) -> Floats:
    """Return the AUC within each cluster (G,), clusters in sorted order; a cluster without both groups is refused."""
    values, flags = as_scores(scores, member)
    groups = np.asarray(cluster)
    return np.array([auc(values[groups == name], flags[groups == name]) for name in np.unique(groups)])


def tpr_at_fpr(curve: Roc, fpr: float | Floats) -> Floats:
    """Return the TPR of the curve at ``fpr``: the best vertex where the curve is vertical, linear in between (ties)."""
    return np.asarray(np.interp(fpr, curve.fpr, curve.tpr), dtype=np.float64)


def randomised_call(scores: ArrayLike, nulls: ArrayLike, fpr: float) -> Floats:
    """Return the probability (n,) with which each score is called "member" at a threshold fixed on ``nulls`` (k,).

    The smoothed conformal test: p = (#{nulls > s} + U·(1 + #{nulls = s})) / (k + 1), U uniform; "member" if p ≤ fpr.
    A score exchangeable with the nulls is called with probability exactly ``fpr``, for any k and any ties.
    """
    values = np.asarray(scores, dtype=np.float64)
    ordered = np.sort(np.asarray(nulls, dtype=np.float64))
    return _calls(*_above_and_equal(values, ordered), ordered.size, fpr)


def _above_and_equal(values: Floats, ordered: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return how many of ``ordered`` (sorted) lie above each value, and how many are equal to it."""
    above = ordered.size - np.searchsorted(ordered, values, side="right")
    return above, ordered.size - above - np.searchsorted(ordered, values, side="left")


def _calls(above: NDArray[np.intp], equal: NDArray[np.intp], nulls: int, fpr: float) -> Floats:
    """Return the probability of "member" of scores with so many of ``nulls`` above and equal to them."""
    return np.clip((fpr * (nulls + 1) - above) / (1 + equal), 0.0, 1.0)


def cross_fitted_tpr(scores: ArrayLike, member: ArrayLike, cluster: ArrayLike, fpr: float) -> Floats:
    """Return the TPR of each target (G,) at a threshold fixed on the unseen points of the other targets.

    The threshold never sees the points it judges, so the TPR is free of the optimism of a ROC read at its own nulls.
    Needs at least two targets; clusters in sorted order.
    """
    values, flags = as_scores(scores, member)
    groups = np.asarray(cluster)
    parts = rows_by(groups)
    if len(parts) < 2:
        raise BadInput("a threshold from the other targets needs at least two targets, got 1")
    ordered, rates = np.sort(values[~flags]), []
    for rows in parts:  # counts among the others: those among all minus those among the own
        own, inside = np.sort(values[rows][~flags[rows]]), values[rows][flags[rows]]
        counts = zip(_above_and_equal(inside, ordered), _above_and_equal(inside, own), strict=True)
        above, equal = (every - few for every, few in counts)
        rates.append(_calls(above, equal, ordered.size - own.size, fpr).mean())
    return np.array(rates)


def required_nulls(fpr: float) -> int:
    """Return how many unseen points make a false-positive rate measurable: ten expected false positives, ⌈10 / fpr⌉."""
    if not 0.0 < fpr < 1.0:
        raise BadInput(f"false-positive rate {fpr} must lie between 0 and 1")
    return math.ceil(round(EXPECTED_FALSE_POSITIVES / fpr, 9))


def check_resolvable(fpr: float, nulls: int) -> None:
    """Raise BadInput when ``nulls`` unseen points cannot resolve ``fpr``; the message names the number needed."""
    needed = required_nulls(fpr)
    if nulls < needed:
        raise BadInput(
            f"false-positive rate {fpr:g} cannot be measured with {nulls} unseen points: it needs at least {needed} "
            f"({EXPECTED_FALSE_POSITIVES} expected false positives); raise split.targets or split.candidates.unseen, "
            f"or ask for a rate of at least {EXPECTED_FALSE_POSITIVES / max(nulls, 1):.3g}"
        )

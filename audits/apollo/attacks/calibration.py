"""The calibrated rule: what traces of labels look like under "forgotten" and "never seen", learnt on pseudo-targets.

Pseudo-targets are unlearned shadows of the group that did not draw the walk, so they share no training data with it
but the candidates. Features of a trace: the label at x and the share of true labels UNDER and OVER, each with the
leave-one-out means of the point over pseudo-targets inside and outside. A logistic regression turns them into one
continuous score. Deviation from Apollo (arXiv 2506.09923): the paper reads its thresholds off the evaluated points.

A target that never saw a point is judged exactly as the pseudo-targets that never saw it, which are its null:

- by the same references: it takes the places of those pseudo-targets (``outside.stand_ins``), and the means beside it
  are those beside the pseudo-target whose place it takes. Log-odds are linear in the means, so the mean over the places
  is the score by the means over all pseudo-targets, while decisions are those of one place;
- by the same fit, which has met neither: walks of one half are judged by a fit to the pseudo-targets of the other. Fits
  to the other points of the same models let a null score move the fits that others are judged by, but no target's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks.base import Finding
from audits.apollo.attacks.outside import stand_ins
from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools, Floats, Ids

Fit = tuple[Floats, Floats, Floats]
"""Weights, centre and scale of ``fit_logistic``."""

RIDGE = 1.0
FOLDS = 5


def calibrated(walks: Walks) -> Finding:
    """Return the calibrated finding of ``walks``.

    A candidate's score is the mean of its log-odds along the two groups' walks; each walk and place decides on its own.
    """
    rows, asked = features(walks.pseudo, walks.blocks), features(walks.target, walks.blocks)
    return weighed(rows, asked, walks.inside, walks.outside, walks.queries)


def weighed(rows: Floats, asked: Floats, inside: Bools, outside: Bools, queries: NDArray[np.int32]) -> Finding:
    """Return the finding of two groups of pseudo-targets, each judged by a fit to the other, and of the target.

    ``rows``: (2, n, K, F) features of pseudo-targets, ``asked``: (2, K, F) of the target; ``inside``, ``outside``:
    (2, n, K).
    """
    fits = [fitted(*group) for group in zip(rows, inside, outside, strict=True)]
    groups = zip(rows, asked, inside, outside, reversed(fits), strict=True)
    return Finding.of_parts([log_odds_of(*group) for group in groups], queries)


def fitted(rows: Floats, inside: Bools, outside: Bools) -> Fit:
    """Return the fit to the pseudo-targets of one group: those inside a point against those outside."""
    known, chosen = beside(rows, (inside, outside)), inside | outside
    return fit_logistic(known[chosen], inside[chosen])


def log_odds_of(rows: Floats, asked: Floats, inside: Bools, outside: Bools, fit: Fit) -> tuple[Floats, Floats]:
    """Return log-odds of "forgotten" of the target in each place (S, K) and of pseudo-targets outside (any length)."""
    known = beside(rows, (inside, outside))
    places, width = stand_ins(outside), asked.shape[-1]
    unknown = known[places, np.arange(len(asked))]
    unknown[..., :width] = asked
    return log_odds(unknown, *fit), log_odds(known[outside], *fit)


def beside(rows: Floats, sides: Sequence[Bools]) -> Floats:
    """Return pseudo-targets' features (n, K, (1 + S)F): own ``rows`` (n, K, F), then each side's leave-one-out mean.

    ``sides``: S masks (n, K), such as inside and outside.
    """
    return np.concatenate([rows, *(leave_one_out(rows, side) for side in sides)], axis=-1)


def folds(points: int) -> list[tuple[Ids, Ids]]:
    """Return (points of a fold, all others) for up to ``FOLDS`` folds; a single point is judged by a fit to itself."""
    fold = np.arange(points) % FOLDS
    return [
        (np.flatnonzero(fold == own), np.flatnonzero((fold != own) | (points == 1)))
        for own in range(min(FOLDS, points))
    ]


def features(says_true: Bools, blocks: Sequence[slice | Ids]) -> Floats:
    """Return (…, F): the share of true labels in each block of the answers (…, Q), such as label at x, UNDER, OVER."""
    found: Floats = np.stack([says_true[..., block].mean(-1) for block in blocks], axis=-1)
    return found


def leave_one_out(rows: Floats, side: Bools) -> Floats:
    """Return (n, K, F): the mean of ``rows`` over the models with ``side`` set, without the model itself.

    With no other model on the side the mean over all models and points of the side but the own one stands in.
    """
    weight = side[..., None].astype(np.float64)
    own = rows * weight
    count, others = weight.sum(0) - weight, weight.sum((0, 1)) - weight
    everyone = np.where(others > 0, (own.sum((0, 1)) - own) / np.maximum(others, 1), side_mean(rows, side))
    return np.where(count > 0, (own.sum(0) - own) / np.maximum(count, 1), everyone)


def point_mean(rows: Floats, side: Bools) -> Floats:
    """Return each point's mean features (K, F) over the models with ``side`` set."""
    weight = side[..., None].astype(np.float64)
    count = weight.sum(0)
    return np.where(count > 0, (rows * weight).sum(0) / np.maximum(count, 1), side_mean(rows, side))


def side_mean(rows: Floats, side: Bools) -> Floats:
    """Return the mean feature vector (F,) of one side; zero when the side is empty."""
    found: Floats = rows[side].mean(0) if side.any() else np.zeros(rows.shape[-1])
    return found


def fit_logistic(rows: Floats, labels: NDArray[np.bool_]) -> Fit:
    """Return weights (F + 1, intercept last), centre and scale of an L2-penalised logistic regression (C = 1)."""
    from sklearn.linear_model import LogisticRegression

    centre, scale = rows.mean(0), rows.std(0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    model = LogisticRegression(C=RIDGE, max_iter=1000, tol=1e-8).fit((rows - centre) / scale, labels)
    return np.append(model.coef_[0], model.intercept_[0]), centre, scale


def log_odds(rows: Floats, weights: Floats, centre: Floats, scale: Floats) -> Floats:
    """Return the log-odds (…,) of ``rows`` (…, F). Summed in a fixed order, so equal rows give equal scores."""
    scaled = (rows - centre) / scale
    total = np.full(rows.shape[:-1], weights[-1])
    for column in range(rows.shape[-1]):
        total = total + scaled[..., column] * weights[column]
    return total

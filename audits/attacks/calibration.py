"""The calibrated rule: what traces of labels look like under "forgotten" and "never seen", learnt on pseudo-targets.

Pseudo-targets are unlearned shadows of the group that did not draw the walk, so they share no training data with it
but the candidates. Features of a trace: the label at x and the share of true labels UNDER and OVER, each with the
leave-one-out means of the point over pseudo-targets inside and outside. A logistic regression turns them into one
continuous score. Deviation from Apollo (arXiv 2506.09923): the paper reads its thresholds off the evaluated points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.attacks.base import Finding, Floats
from audits.attacks.evidence import Bools, Walks

RIDGE = 1.0
FOLDS = 5


def calibrated(walks: Walks, columns: slice | None = None) -> Finding:
    """Return the calibrated finding of ``walks``; ``columns=slice(0, 1)`` keeps the single query at x only.

    A candidate's score is the mean of its log-odds along the two groups' walks; each walk decides by a threshold of its
    own. A point is judged, pseudo-targets and target alike, by a fit to the points of the other folds: on points that a
    fit has seen, the null would lie too low.
    """
    parts = []
    for pseudo, inside, target in zip(walks.pseudo, walks.inside, walks.target, strict=True):
        rows = features(pseudo, columns)
        known = np.concatenate([rows, *leave_one_out_means(rows, inside)], axis=-1)
        asked = features(target, columns)
        unknown = np.concatenate([asked, *point_means(rows, inside)], axis=-1)
        score, null = np.empty(len(unknown)), np.empty(inside.shape)
        for own, others in folds(len(unknown)):
            fit = fit_logistic(known[:, others].reshape(-1, known.shape[-1]), inside[:, others].reshape(-1))
            score[own] = log_odds(unknown[own], *fit)
            null[:, own] = log_odds(known[:, own], *fit)
        parts.append((score, null[~inside]))
    queries = walks.queries if columns is None else np.ones_like(walks.queries)
    scores, nulls = zip(*parts, strict=True)
    return Finding(np.mean(scores, axis=0), np.concatenate(nulls), queries, tuple(parts))


def folds(points: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return (points of a fold, all others) for up to ``FOLDS`` folds; a single point is judged by a fit to itself."""
    fold = np.arange(points) % FOLDS
    return [
        (np.flatnonzero(fold == own), np.flatnonzero((fold != own) | (points == 1)))
        for own in range(min(FOLDS, points))
    ]


def features(says_true: Bools, columns: slice | None = None) -> Floats:
    """Return (…, 3): label at x, share of true labels UNDER, share OVER, of answers (…, 1 + 2T).

    With ``columns=slice(0, 1)`` only the label at x is kept, (…, 1).
    """
    steps = (says_true.shape[-1] - 1) // 2
    parts = [says_true[..., 0], says_true[..., 1 : 1 + steps].mean(-1), says_true[..., 1 + steps :].mean(-1)]
    found: Floats = np.stack([part.astype(np.float64) for part in parts], axis=-1)[..., columns or slice(None)]
    return found


def leave_one_out_means(rows: Floats, inside: Bools) -> tuple[Floats, Floats]:
    """Return each point's mean features over the *other* pseudo-targets inside and outside; (n, K, F) each.

    With no other model on a side the mean over all models and points of that side stands in.
    """
    return tuple(leave_one_out(rows, side) for side in (inside, ~inside))  # type: ignore[return-value]  # two sides


def leave_one_out(rows: Floats, side: Bools) -> Floats:
    """Return (n, K, F): the mean of ``rows`` over the models with ``side`` set, without the model itself."""
    weight = side[..., None].astype(np.float64)
    total = (rows * weight).sum(0) - rows * weight
    count = weight.sum(0) - weight
    return np.where(count > 0, total / np.maximum(count, 1), side_mean(rows, side))


def point_means(rows: Floats, inside: Bools) -> tuple[Floats, Floats]:
    """Return each point's mean features over all pseudo-targets inside and outside; (K, F) each."""
    found = []
    for side in (inside, ~inside):
        weight = side[..., None].astype(np.float64)
        count = weight.sum(0)
        found.append(np.where(count > 0, (rows * weight).sum(0) / np.maximum(count, 1), side_mean(rows, side)))
    return found[0], found[1]


def side_mean(rows: Floats, side: Bools) -> Floats:
    """Return the mean feature vector (F,) of one side; zero when the side is empty."""
    found: Floats = rows[side].mean(0) if side.any() else np.zeros(rows.shape[-1])
    return found


def fit_logistic(rows: Floats, labels: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
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

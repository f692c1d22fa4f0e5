"""The calibrated rule: what traces of labels look like under "forgotten" and "never seen", learnt on pseudo-targets.

Pseudo-targets are unlearned shadows of the group that did not draw the walk, so they share no training data with it
but the candidates. Features of a trace: the label at x and the share of true labels UNDER and OVER, each with the
leave-one-out means of the point over pseudo-targets inside and outside. A logistic regression turns them into one
continuous score. Deviation from Apollo (arXiv 2506.09923): the paper reads its thresholds off the evaluated points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks.base import Finding
from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools, Floats, Ids

RIDGE = 1.0
FOLDS = 5


def calibrated(walks: Walks) -> Finding:
    """Return the calibrated finding of ``walks``.

    A candidate's score is the mean of its log-odds along the two groups' walks; each walk decides by a threshold of its
    own. A point is judged, pseudo-targets and target alike, by a fit to the points of the other folds: on points that a
    fit has seen, the null would lie too low.
    """
    parts = []
    for pseudo, inside, outside, target in zip(walks.pseudo, walks.inside, walks.outside, walks.target, strict=True):
        rows, asked = features(pseudo, walks.blocks), features(target, walks.blocks)
        score, null = judged(rows, asked, inside, outside)
        parts.append((score, null[outside]))
    return Finding.of_parts(parts, walks.queries)


def judged(rows: Floats, asked: Floats, inside: Bools, outside: Bools) -> tuple[Floats, Floats]:
    """Return log-odds of "forgotten" of the target (K,) and of every pseudo-target (n, K), each by a cross-fitted fit.

    ``rows``: (n, K, F) features of pseudo-targets, ``asked``: (K, F) of the target; ``inside``, ``outside``: (n, K).
    """
    known, unknown = described(rows, asked, (inside, outside))
    score, null = np.empty(len(unknown)), np.empty(inside.shape)
    for own, others in folds(len(unknown)):
        score[own], null[:, own] = judged_by(others, own, known, unknown, inside, outside)
    return score, null


def described(rows: Floats, asked: Floats, sides: Sequence[Bools]) -> tuple[Floats, Floats]:
    """Return pseudo-targets' features (n, K, (1 + S)F) and the target's (K, (1 + S)F): own, then the mean of each side.

    ``sides``: S masks (n, K), such as inside and outside.
    """
    known = np.concatenate([rows, *(leave_one_out(rows, side) for side in sides)], axis=-1)
    unknown = np.concatenate([asked, *(point_mean(rows, side) for side in sides)], axis=-1)
    return known, unknown


def judged_by(
    others: Ids, own: Ids, known: Floats, unknown: Floats, inside: Bools, outside: Bools
) -> tuple[Floats, Floats]:
    """Return log-odds of the target (len(own),) and of pseudo-targets (n, len(own)) by a fit to the points others."""
    chosen = (inside | outside)[:, others]
    fit = fit_logistic(known[:, others][chosen], inside[:, others][chosen])
    return log_odds(unknown[own], *fit), log_odds(known[:, own], *fit)


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

    With no other model on the side the mean over all models and points of the side stands in.
    """
    weight = side[..., None].astype(np.float64)
    total = (rows * weight).sum(0) - rows * weight
    count = weight.sum(0) - weight
    return np.where(count > 0, total / np.maximum(count, 1), side_mean(rows, side))


def point_mean(rows: Floats, side: Bools) -> Floats:
    """Return each point's mean features (K, F) over the models with ``side`` set."""
    weight = side[..., None].astype(np.float64)
    count = weight.sum(0)
    return np.where(count > 0, (rows * weight).sum(0) / np.maximum(count, 1), side_mean(rows, side))


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

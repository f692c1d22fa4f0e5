"""Triage: whether a ranking of points predicts which of them shadows, and an attack, find exposed.

The outcomes come from shadows, which have no part in the ranking; the attack's success by bin comes from the ranked
models themselves. A score that is to be believed must beat the controls of ``rankings``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Bools, Floats, Labels
from audits.errors import BadInput, did_you_mean
from audits.gnq.answers import check_twins, twin_of
from audits.gnq.removal import aucs
from audits.signals.confidence import scaled
from audits.signals.likelihood_ratio import moments
from audits.signals.loss import minus_loss
from audits.statistics.rank_correlation import own_values

RULES = ("same", "all")
"""Non-members that a bin's members are told apart from, by :func:`bin_aucs`."""


def loss_gap(logits: NDArray[Any], half: Bools, labels: Labels) -> Floats:
    """Return the mean loss of models without a point minus that of models with it, (N,) float64 in nats.

    ``logits`` (M, N, classes); ``half`` (M, N) bool: which points each model was trained on. The more a model gains by
    training on the point itself, the larger. Raises BadInput for shapes that do not fit, logits that are not finite
    and points that all or none of the models were trained on.
    """
    check_models(logits, half, labels)
    loss = -minus_loss(logits, labels)
    return mean_over(loss, ~half) - mean_over(loss, half)


def vulnerability(logits: NDArray[Any], half: Bools, labels: Labels) -> Floats:
    """Return (μ_in − μ_out)/σ (N,) float64: how far apart LiRA's two Gaussians of a point are (arXiv 2112.03570).

    μ: means over models with and without the point of log(p_y/(1 − p_y)). σ² is the mean of the two sides' variances,
    each pooled over points as in attack ``lira``; one σ for all, so that points rank by μ_in − μ_out. Arguments and
    errors as for ``loss_gap``; also BadInput for fewer than two models on either side of every point.
    """
    check_models(logits, half, labels)
    if min(half.sum(0).max(), (~half).sum(0).max()) < 2:
        raise BadInput(f"{len(half)} models leave no point with two on a side, so there is no variance; train more")
    confidence = scaled(logits, labels)
    (inside, one), (outside, other) = (moments(confidence, side, pooled=True) for side in (half, ~half))
    found: Floats = (inside - outside) / np.sqrt((one + other) / 2)
    return found


def bins_of(score: ArrayLike, half: Bools, bins: int) -> NDArray[np.int64]:
    """Return the bin (T, N) int64 of each target's own points by its score: 0 = least exposed; −1 for other points.

    The sizes of a target's bins differ by at most 1, the lower ones being the larger. Of equal scores the first in the
    pool count as more exposed, as in ``kept_points``. Arguments as for ``spearman``; BadInput unless every bin has a
    point.
    """
    scores = own_values("score", score, half)
    if not 1 <= bins <= half.sum(1).min():
        raise BadInput(f"bins is {bins}; allowed: 1 to {half.sum(1).min()}, a target's own points")
    found = np.full(half.shape, -1)
    for target, own in enumerate(half):
        points = np.flatnonzero(own)
        rising = points[np.argsort(-scores[target, points], kind="stable")[::-1]]
        for number, members in enumerate(np.array_split(rising, bins)):
            found[target, members] = number
    return found


def bin_aucs(score: ArrayLike, attack: ArrayLike, half: Bools, bins: int, rule: str) -> Floats:
    """Return the AUC (T, bins) of an attack on each bin of each target's own points, least exposed first.

    ``attack`` (T, N): the attack's scores, higher = more like a member; rows 2i and 2i + 1 of all arrays are twins.
    ``rule``: "same" tells a bin's members apart from the twin's points in the twin's bin of the same number, so that
    both sides went through one rule; "all" from all of the twin's points, so that points which are merely easy or hard
    count as well told apart. A bin ends at another score in each half, which shifts the AUCs of twins in opposite
    directions: read their mean. Other arguments and errors as for ``bins_of``; BadInput for another rule, attack scores
    that are not numbers and targets that are not twins.
    """
    if rule not in RULES:
        raise BadInput(f"rule is {rule!r}{did_you_mean(rule, RULES)}; allowed: {', '.join(RULES)}")
    check_twins(half)
    answers = own_values("attack", attack, np.ones_like(half))
    number = bins_of(score, half, bins)
    found = [aucs(answers, number == each, twin_of(number == each if rule == "same" else half)) for each in range(bins)]
    return np.stack(found, axis=1)


def mean_over(values: Floats, side: Bools) -> Floats:
    """Return the means (N,) of ``values`` (M, N) over the models with ``side`` (M, N) set."""
    found: Floats = np.where(side, values, 0.0).sum(0) / side.sum(0)
    return found


def check_models(logits: NDArray[Any], half: Bools, labels: Labels) -> None:
    """Refuse arrays that do not fit, logits that are not finite and points without a model on either side."""
    if half.dtype != bool or logits.ndim != 3 or logits.shape[:2] != half.shape or labels.shape != half.shape[1:]:
        raise BadInput(
            f"logits have shape {logits.shape}, half is {half.dtype} {half.shape} and labels {labels.shape}; allowed: "
            "(models, points, classes), bool (models, points) and (points,)"
        )
    if not np.isfinite(logits).all():
        raise BadInput("logits are not all finite; a model may have diverged: lower its learning rate")
    lonely = int((half.all(0) | ~half.any(0)).sum())
    if lonely:
        raise BadInput(f"{lonely} points are in all of the models or in none; give models on both sides of each point")

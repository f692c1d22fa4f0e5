"""Members told from non-members without the model: by inputs and labels alone.

An audit of a given model compares points that it was trained on with points that it was not, as somebody else has
chosen them. Where the two differ by what they are (the first half of a sorted file, another source, another year), an
attack finds that difference as well, and a model that holds nothing of its members seems to leak (Das, Zhang and
Tramèr, arXiv 2406.16201, on published benchmarks). Nobody can tell members of a fair draw apart without the model. So
what a simple classifier can do here is not membership.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Labels
from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator
from audits.statistics.one_target import Interval, one_target_auc

FOLDS = 5
COMPONENTS, EACH = 32, 10
"""Principal components of wider inputs that the classifier reads, at most, and points for each of them, at least."""
NUMBERS = 1024
"""Numbers of an input from which the components are made, at most: evenly spaced ones of larger inputs."""
STRENGTH = 1.0
"""Inverse of the penalty on coefficients of features of variance 1."""


def blind_auc(x: NDArray[Any], labels: Labels, member: Bools, seed: int = 0, level: float = 0.95) -> Interval:
    """Return the AUC of ``blind_scores`` with its interval over points: above ½, members differ by what they are."""
    return one_target_auc(blind_scores(x, labels, member, seed), member, level=level)


def blind_scores(x: NDArray[Any], labels: Labels, member: Bools, seed: int = 0) -> Floats:
    """Return how much each point looks like a member (N,), by inputs ``x`` (N, …) and ``labels`` (N,) alone.

    Logistic regression on principal components and one-hot labels, each point by a fit to the folds without it; every
    fold has the same share of members, or their number would be told by the fit. Raises BadInput for fewer than
    ``FOLDS`` points of a side.
    """
    from sklearn.linear_model import LogisticRegression

    rng = numpy_generator(derive_seed(seed, "blind folds"))
    fold = np.empty(len(member), np.int64)
    for side in (member, ~member):
        if side.sum() < FOLDS:
            raise BadInput(f"{int(side.sum())} points of a side; allowed: {FOLDS} or more, one for each fold")
        fold[side] = rng.permutation(int(side.sum())) % FOLDS
    features, found = described(x, labels), np.empty(len(member))
    for out in range(FOLDS):
        fit = LogisticRegression(C=STRENGTH, max_iter=500).fit(features[fold != out], member[fold != out])
        found[fold == out] = fit.decision_function(features[fold == out])
    return found


def described(x: NDArray[Any], labels: Labels) -> Floats:
    """Return the features (N, F), one-hot labels among them, of variance 1: who is a member takes no part."""
    flat = x.reshape(len(x), -1)
    flat = flat[:, :: -(-flat.shape[1] // NUMBERS)].astype(np.float64)
    flat = scaled(flat)
    count = min(COMPONENTS, max(1, len(flat) // EACH))
    if flat.shape[1] > count:
        axes = np.linalg.svd(flat, full_matrices=False)[2][:count]
        flat = scaled(flat @ axes.T)
    return np.column_stack([flat, scaled((labels[:, None] == np.unique(labels)).astype(np.float64))])


def scaled(values: Floats) -> Floats:
    """Return columns of mean 0 and variance 1, without those that do not vary."""
    spread = values.std(axis=0)
    varies = spread > 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
    return np.asarray((values[:, varies] - values[:, varies].mean(axis=0)) / spread[varies])

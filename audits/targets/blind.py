"""Members told from non-members without the model: by inputs and labels, and by models that saw neither.

An audit of a given model compares points that it was trained on with points that it was not, as somebody else has
chosen them. Where the two differ by what they are (the first half of a sorted file, another source, another year), an
attack finds that difference as well, and a model that holds nothing of its members seems to leak (Das, Zhang and
Tramèr, arXiv 2406.16201, on published benchmarks). Nobody can tell members of a fair draw apart without the model. So
what classifiers can do here is not membership.

One of them is linear, the other one boosts trees: it sees what is brighter in one class and darker in another, flatter
or noisier. Labels that were given otherwise show in how well models that did not see a point predict its label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Labels
from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator
from audits.statistics.one_target import one_target_auc
from audits.statistics.roc import auc

FOLDS = 5
COMPONENTS, EACH = 32, 10
"""Principal components of wider inputs that classifiers read, at most, and points for each of them, at least."""
NUMBERS = 1024
"""Numbers of an input from which the components are made, at most: evenly spaced ones of larger inputs."""
STRENGTH = 1.0
"""Inverse of the penalty on coefficients of features of variance 1."""
DRAWS = 39
"""Draws of members by chance at the most; none is made behind the first that does as well."""
LEVEL_P = 0.025
"""One side of an interval of 95 %."""


@dataclass(frozen=True)
class Blind:
    """What is told without the model: by the better of the classifiers an AUC with its interval over points.

    ``p``: of as much by chance, from fits to other draws of members; ``by``: the classifier.
    """

    auc: float
    low: float
    high: float
    p: float
    by: str

    @property
    def differ(self) -> bool:
        """Whether members differ by what they are."""
        return self.p <= LEVEL_P


def blind_test(
    x: NDArray[Any], labels: Labels, member: Bools, seed: int = 0, level: float = 0.95, unseen: Floats | None = None
) -> Blind:
    """Test whether ``member`` (N,) shows in inputs ``x`` (N, …), ``labels`` (N,) and what models say of unseen points.

    ``unseen`` (N, U): numbers of each point from models that were not trained on it, None without any. The interval of
    the AUC is that of fixed scores, too short for fits to the same points, and for the better of two. Hence p-values:
    all is fitted again to other draws of so many members, until one does as well, the n-th: p is 1/n (Besag and
    Clifford, Biometrika 1991), or 1/40 where none of 39 does. It is exact where chance drew the members. Raises
    BadInput for fewer than ``FOLDS`` points of a side.
    """
    features = described(x, labels, unseen)
    scores = {name: scored(fit, features, member, seed) for name, fit in CLASSIFIERS.items()}
    areas = {name: auc(found, member) for name, found in scores.items()}
    best = max(areas, key=lambda name: areas[name])
    rng, draws, as_much = numpy_generator(derive_seed(seed, "blind draws")), 0, False
    while draws < DRAWS and not as_much:
        drawn, draws = rng.permutation(member), draws + 1
        as_much = any(auc(scored(fit, features, drawn, seed), drawn) >= areas[best] for fit in CLASSIFIERS.values())
    p = 1 / (draws if as_much else draws + 1)
    return Blind(*one_target_auc(scores[best], member, level=level), p, best)


Scorer = Callable[[Floats, Bools, Floats], Floats]
"""Takes features and members to fit to, and features to score; returns a score for each of the latter."""


def linear(features: Floats, member: Bools, others: Floats) -> Floats:
    """Score by logistic regression."""
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(C=STRENGTH, max_iter=500).fit(features, member)
    return np.asarray(fit.decision_function(others))


def trees(features: Floats, member: Bools, others: Floats) -> Floats:
    """Score by boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    fit = HistGradientBoostingClassifier(
        max_iter=20, learning_rate=0.3, max_leaf_nodes=6, max_bins=32, early_stopping=False, random_state=0
    ).fit(features, member)
    return np.asarray(fit.decision_function(others))


CLASSIFIERS: Mapping[str, Scorer] = {"linear": linear, "trees": trees}


def scored(fit: Scorer, features: Floats, member: Bools, seed: int = 0) -> Floats:
    """Return how much each point looks like a member (N,), by a fit to the folds without it.

    Every fold has the same share of members, or their number would be told by the fit.
    """
    rng = numpy_generator(derive_seed(seed, "blind folds"))
    fold = np.empty(len(member), np.int64)
    for side in (member, ~member):
        if side.sum() < FOLDS:
            raise BadInput(f"{int(side.sum())} points of a side; allowed: {FOLDS} or more, one for each fold")
        fold[side] = rng.permutation(int(side.sum())) % FOLDS
    found = np.empty(len(member))
    for out in range(FOLDS):
        found[fold == out] = fit(features[fold != out], member[fold != out], features[fold == out])
    return found


def described(x: NDArray[Any], labels: Labels, unseen: Floats | None = None) -> Floats:
    """Return the features (N, F) of variance 1: who is a member takes no part.

    They are principal components, what an input is like as a whole, one-hot labels, and what is ``unseen``.
    """
    flat = x.reshape(len(x), -1)
    flat = flat[:, :: -(-flat.shape[1] // NUMBERS)].astype(np.float64)
    whole = [flat.mean(1), flat.std(1), flat.max(1), flat.min(1), np.abs(np.diff(flat, axis=1)).mean(1)]
    flat = scaled(flat)
    count = min(COMPONENTS, max(1, len(flat) // EACH))
    if flat.shape[1] > count:
        axes = np.linalg.svd(flat, full_matrices=False)[2][:count]
        flat = scaled(flat @ axes.T)
    one_hot = (labels[:, None] == np.unique(labels)).astype(np.float64)
    parts = [np.column_stack(whole), one_hot, *([] if unseen is None else [unseen])]
    return np.column_stack([flat, *map(scaled, parts)])


def scaled(values: Floats) -> Floats:
    """Return columns of mean 0 and variance 1, without those that do not vary."""
    spread = values.std(axis=0)
    varies = spread > 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
    return np.asarray((values[:, varies] - values[:, varies].mean(axis=0)) / spread[varies])

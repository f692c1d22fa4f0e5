"""The classifier of U-MIA: a support vector machine on posteriors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats

PENALTY = 3.0
ROWS = 2000

Judge = Callable[[Floats], Floats]


def fit(features: Floats, forgotten: Bools) -> Judge:
    """Return the decision function of an SVC fitted to ``features`` (N, classes) and ``forgotten`` (N,).

    C = 3 and an RBF kernel of width 1/classes, unscaled: the settings of Apollo's public reference. Both classes weigh
    the same, whatever their numbers. More than ``ROWS`` rows are thinned to a fixed sample of them. Rows of one class
    alone teach nothing: all scores are 0.
    """
    from sklearn.svm import SVC

    kept = thinned(len(features))
    if len(np.unique(forgotten[kept])) < 2:
        return lambda asked: np.zeros(asked.shape[:-1])
    machine = SVC(C=PENALTY, kernel="rbf", gamma="auto", class_weight="balanced").fit(features[kept], forgotten[kept])

    def judge(asked: Floats) -> Floats:
        flat = asked.reshape(-1, asked.shape[-1])
        found: Floats = machine.decision_function(flat).reshape(asked.shape[:-1])
        return found

    return judge


def thinned(rows: int) -> NDArray[np.int64]:
    """Return the positions of at most ``ROWS`` of ``rows`` rows, in order; they depend on the number alone."""
    if rows <= ROWS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(rows).permutation(rows)[:ROWS])

"""QMIA: a confidence that is high for such a point (Bertran et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.mia.answers import Case, Inputs
from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding, against_known

COMPONENTS = 16
"""Principal components of the points that the regression reads, at most."""
NUMBERS = 1024
"""Numbers of a point from which the components are made, at most: evenly spaced ones of larger points."""
LEVELS = (0.5, 0.9)
SMALLEST_SPREAD = 1e-3


@MIA_ATTACKS.register("qmia")
@dataclass(frozen=True)
class QMIA(Attack):
    """Quantile regression (Bertran et al., arXiv 2307.03694): what confidence do non-members like this point have?

    Score: how far the model's confidence log(p_y/(1 − p_y)) lies above the median given the point, in units of the
    distance from the median to the quantile .9. Quantiles are learned from known non-members, of one half of them; the
    other half is the null.

    Source: Bertran et al., arXiv 2307.03694.

    Deviations: boosted trees on principal components and the class, where the paper trains a network on the points and
    reads the quantile of the promised rate itself; the rate is kept by conformal calibration on the other half,
    whatever the regression is worth.

    Cost: posteriors at the point and at known non-members, and the points themselves; no shadows.

    Not for: few known non-members, or inputs of which principal components say nothing.
    """

    def find(self, case: Case) -> Finding:
        """Return the standardised confidence (T, K)."""
        seen = case.known_posteriors(self.name)
        if case.inputs is None:
            raise BadInput(f"attack {self.name} reads the points themselves, which are missing")
        features, known = described(case.inputs)
        taught = np.arange(len(known)) % 2 == 0
        rows = [
            standardised(own, theirs, features, known, taught)
            for own, theirs in zip(seen.confidence, seen.known_confidence, strict=True)
        ]
        return against_known(np.stack([row for row, _ in rows]), np.stack([null for _, null in rows]))


def described(inputs: Inputs) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the features (K, F) of the points and (Z, F) of known non-members, whose components are taken."""
    step = -(-inputs.known.shape[1] // NUMBERS)
    known = inputs.known[:, ::step].astype(np.float64)
    centre = known.mean(0)
    axes = np.linalg.svd(known - centre, full_matrices=False)[2][:COMPONENTS]
    parts = ((inputs.x, inputs.labels), (inputs.known, inputs.known_labels))
    here, there = (np.column_stack([(x[:, ::step] - centre) @ axes.T, labels]) for x, labels in parts)
    return here, there


def standardised(
    own: Floats, theirs: Floats, features: NDArray[Any], known: NDArray[Any], taught: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the score of the points (K,), and of the known non-members that were not ``taught``."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    asked = np.concatenate([features, known[~taught]])
    values = np.concatenate([own, theirs[~taught]])
    middle, high = (
        HistGradientBoostingRegressor(
            loss="quantile", quantile=level, max_iter=40, learning_rate=0.15, max_leaf_nodes=6, min_samples_leaf=20,
            early_stopping=False, random_state=0, categorical_features=[features.shape[1] - 1],
        )
        .fit(known[taught], theirs[taught])
        .predict(asked)
        for level in LEVELS
    )  # fmt: skip
    found = (values - middle) / np.maximum(high - middle, SMALLEST_SPREAD)
    return found[: len(own)], found[len(own) :]

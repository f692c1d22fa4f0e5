"""Confidence in the true class, as membership attacks read it of a posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats


def scaled(log_probabilities: NDArray[Any], labels: NDArray[np.int64]) -> Floats:
    """Return log p_y − log Σ_{j≠y} p_j (…, K) of log-probabilities (…, K, classes) for true classes ``labels`` (K,).

    It is log(p_y/(1 − p_y)), stable where p_y is near 1 or 0 (arXiv 2112.03570, section IV).
    """
    from scipy.special import logsumexp

    values = log_probabilities.astype(np.float64)
    true = np.arange(values.shape[-1]) == labels[:, None]
    own = np.where(true, values, 0.0).sum(-1)
    found: Floats = own - logsumexp(np.where(true, -np.inf, values), axis=-1)
    return found


def of_true_class(log_probabilities: NDArray[Any], labels: NDArray[np.int64]) -> Floats:
    """Return log p_y (…, K) in float64 of log-probabilities (…, K, classes) for true classes ``labels`` (K,)."""
    found: Floats = log_probabilities[..., np.arange(len(labels)), labels].astype(np.float64)
    return found

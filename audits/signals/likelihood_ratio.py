"""The likelihood-ratio score of LiRA (Carlini et al. 2022)."""

from __future__ import annotations

import numpy as np

from audits.arrays import Bools, Floats

SMALLEST_VARIANCE = 1e-6


def log_likelihood_ratio(asked: Floats, values: Floats, sides: Bools, *, pooled: bool = True) -> Floats:
    """Return log N(asked; μ_in, σ²_in) − log N(asked; μ_out, σ²_out) for K points.

    ``asked``: (K,); ``values``: (2, m, K) scaled confidences for inside and outside; ``sides``: (2, m, K), which of
    them count. Means per point; variances pooled over points, or per point.
    """
    density = []
    for value, side in zip(values, sides, strict=True):
        mean, variance = moments(value, side, pooled=pooled)
        density.append(gaussian(asked, mean, variance))
    ratio: Floats = density[0] - density[1]
    return ratio


def surprise(asked: Floats, values: Floats, outside: Bools) -> Floats:
    """Return −log Pr[Z > asked] (K,) for Z normal as ``values`` (m, K) of the models ``outside`` (m, K)."""
    from scipy.special import log_ndtr

    mean, variance = moments(values, outside, pooled=True)
    found: Floats = -log_ndtr((mean - asked) / np.sqrt(variance))
    return found


def gaussian(asked: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return the log density of a Gaussian but for −½ log 2π."""
    found: Floats = -((asked - mean) ** 2) / (2 * variance) - 0.5 * np.log(variance)
    return found


def moments(values: Floats, side: Bools, *, pooled: bool) -> tuple[Floats, Floats]:
    """Return mean (K,) and variance (K,) of ``values`` (m, K) over the models with ``side`` (m, K) set.

    Pooled variance: squared deviations from the points' means over the degrees of freedom of all points. Per point:
    the maximum-likelihood estimate; the pooled one stands in for points with fewer than two models. A point without
    any model takes the mean of the side. No variance is below ``SMALLEST_VARIANCE``.
    """
    count = side.sum(0)
    overall = values[side].mean() if side.any() else 0.0
    mean = np.where(count > 0, np.where(side, values, 0.0).sum(0) / np.maximum(count, 1), overall)
    squares = np.where(side, (values - mean) ** 2, 0.0).sum(0)
    shared = squares.sum() / max(1, int((count - (count > 0)).sum()))
    variance = np.full(mean.shape, shared) if pooled else np.where(count > 1, squares / np.maximum(count, 1), shared)
    return mean, np.maximum(variance, SMALLEST_VARIANCE)

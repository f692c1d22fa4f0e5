"""Variances of many points, each from few models, drawn towards what they have in common.

Empirical Bayes (Smyth, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, sections 3 and 6.2): if the points' variances are
drawn from a scaled inverse χ² with d₀ degrees of freedom around s₀², the expectation of 1/σ² given a sample variance s²
with d degrees of freedom is (d₀ + d)/(d₀·s₀² + d·s²). Both are fitted to mean and spread of log s² over the points.
"""

from __future__ import annotations

import numpy as np

from audits.arrays import Bools, Floats
from audits.signals.likelihood_ratio import SMALLEST_VARIANCE

NEWTON_STEPS = 50


def moderated_moments(values: Floats, side: Bools) -> tuple[Floats, Floats]:
    """Return mean (K,) and moderated variance (K,) of ``values`` (m, K) over the models with ``side`` (m, K) set.

    Points with fewer than two models have the variance s₀², and without any the mean of the side. No variance is below
    ``SMALLEST_VARIANCE``.
    """
    count = side.sum(0)
    overall = values[side].mean() if side.any() else 0.0
    mean = np.where(count > 0, np.where(side, values, 0.0).sum(0) / np.maximum(count, 1), overall)
    squares = np.where(side, (values - mean) ** 2, 0.0).sum(0)
    freedom = np.maximum(count - 1, 0).astype(np.float64)
    prior, shared = fitted_prior(squares / np.maximum(freedom, 1.0), freedom)
    if np.isinf(prior):
        variance: Floats = np.full(mean.shape, shared)
    else:
        variance = (prior * shared + squares) / (prior + freedom)
    return mean, np.maximum(variance, SMALLEST_VARIANCE)


def fitted_prior(variances: Floats, freedom: Floats) -> tuple[float, float]:
    """Return d₀ (infinite where the points' variances differ by no more than chance) and s₀² of sample ``variances``.

    ``freedom`` (K,): their degrees of freedom. Points without one, and variances of zero, take no part; with fewer than
    two left, d₀ is infinite and s₀² their mean, or ``SMALLEST_VARIANCE``.
    """
    from scipy.special import digamma, polygamma

    told = (freedom > 0) & (variances > 0)
    if told.sum() < 2:
        return np.inf, float(variances[told].mean()) if told.any() else SMALLEST_VARIANCE
    half = freedom[told] / 2
    logs = np.log(variances[told]) - digamma(half) + np.log(half)
    spread = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if spread <= 0:
        return np.inf, float(np.exp(logs.mean()))
    prior = 2 * inverse_trigamma(spread)
    return prior, float(np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2)))


def inverse_trigamma(value: float) -> float:
    """Return y > 0 with ψ′(y) = ``value`` > 0, by Newton's steps on 1/ψ′, which is nearly linear (Smyth, appendix)."""
    from scipy.special import polygamma

    y = 0.5 + 1 / value
    for _ in range(NEWTON_STEPS):
        found = float(polygamma(1, y))
        step = found * (1 - found / value) / float(polygamma(2, y))
        y += step
        if abs(step) < 1e-10 * y:
            break
    return y

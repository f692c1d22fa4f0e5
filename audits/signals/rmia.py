"""The likelihood ratios of RMIA (Zarifzadeh et al., arXiv 2312.03262): a point against points of the population."""

from __future__ import annotations

import numpy as np

from audits.arrays import Bools, Floats

GAMMA = 1.0


def dominance(candidates: Floats, population: Floats) -> Floats:
    """Return the mean (K,) over z of LR/(LR + γ), of log p(·|θ)/p(·) of candidates (K,) and population points (Z,)."""
    from scipy.special import expit

    found: Floats = expit(candidates[:, None] - population - np.log(GAMMA)).mean(1)
    return found


def evidence_of(log_probability: Floats, sides: Bools) -> Floats:
    """Return log p(x) (K,): half the mean of p (m, K) over the references inside, half over those outside.

    Where a side (2, m, K) has no references the other counts alone.
    """
    means = np.stack([log_mean(log_probability, side) for side in sides])
    heard = np.isfinite(means).sum(0)
    found: Floats = np.logaddexp(*means) - np.log(np.maximum(heard, 1))
    return found


def log_mean(log_probability: Floats, side: Bools) -> Floats:
    """Return the log of the mean of p (K,) over the models of a side; ``log_probability``, ``side``: (m, K)."""
    from scipy.special import logsumexp

    found: Floats = logsumexp(np.where(side, log_probability, -np.inf), axis=0) - np.log(np.maximum(side.sum(0), 1))
    return found

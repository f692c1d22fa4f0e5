"""How often each interval holds the true value when target models differ: simulation for test_evaluation.py."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from audits.statistics import intervals, roc

POINTS = 50


def auc_coverage(targets: int, mean: float, spread: float, shift: float, repeats: int, draws: int, seed: int):
    """Return {interval: share of repeats that hold the mean true AUC}: binormal scores, 50 + 50 points a target."""
    rng = np.random.default_rng(seed)
    held = dict.fromkeys(("t", "bootstrap", "two_stage", "pooled_t", "pooled_bootstrap", "delong"), 0)
    weights = intervals.bootstrap_weights(targets, draws, seed + 1)
    member = np.tile(np.arange(2 * POINTS) < POINTS, targets)
    cluster = np.repeat(np.arange(targets), 2 * POINTS)
    for _ in range(repeats):
        true = np.clip(rng.normal(mean, spread, targets), 0.01, 0.99)
        scores = rng.normal(size=(targets, 2 * POINTS)) + rng.normal(0.0, shift, (targets, 1))
        scores[:, :POINTS] += np.sqrt(2.0) * ndtri(true)[:, None]
        flat = scores.ravel()
        won, pairs = roc.pairwise_wins(flat, member, cluster)
        values = np.diag(won) / np.diag(pairs)
        pooled = intervals.pooled_auc(won, pairs)
        found = {
            "t": intervals.ibragimov_mueller_t(values),
            "bootstrap": quantiles(intervals.mean_over_clusters(values)(weights)),
            "two_stage": quantiles(two_stage(scores, weights, rng)),
            "pooled_t": intervals.cluster_jackknife_t(pooled, targets),
            "pooled_bootstrap": quantiles(pooled(weights)),
            "delong": intervals.delong_interval(flat, member),
        }
        for name, (low, high) in found.items():
            held[name] += low <= mean <= high
    return {name: count / repeats for name, count in held.items()}


def two_stage(scores, weights, rng):
    """Resample targets, then points within each of them (the same point resample for repeated targets)."""
    share = np.full(POINTS, 1.0 / POINTS)
    draws = weights.shape[0]
    columns = []
    for row in scores:
        inside, outside = row[:POINTS], row[POINTS:]
        won = (inside[:, None] > outside) / POINTS**2
        forget = rng.multinomial(POINTS, share, size=draws)
        unseen = rng.multinomial(POINTS, share, size=draws)
        columns.append(((forget @ won) * unseen).sum(axis=1))
    return (np.stack(columns, axis=1) * weights).sum(axis=1) / weights.sum(axis=1)


def rate_coverage(targets: int, rate: float, spread: float, repeats: int, draws: int, seed: int):
    """Return {interval: share of repeats that hold the true rate} for 50 decisions a target, beta-distributed rates."""
    rng = np.random.default_rng(seed)
    held = dict.fromkeys(("t", "bootstrap", "clopper_pearson", "clustered_rate"), 0)
    weights = intervals.bootstrap_weights(targets, draws, seed + 1)
    size = rate * (1 - rate) / spread**2 - 1 if spread else 0.0
    for _ in range(repeats):
        true = rng.beta(rate * size, (1 - rate) * size, targets) if spread else np.full(targets, rate)
        hits = rng.binomial(POINTS, true)
        found = {
            "t": intervals.ibragimov_mueller_t(hits / POINTS),
            "bootstrap": quantiles(intervals.mean_over_clusters(hits / POINTS)(weights)),
            "clopper_pearson": intervals.clopper_pearson(hits.sum(), POINTS * targets),
            "clustered_rate": intervals.clustered_rate(hits, np.full(targets, POINTS)),
        }
        for name, (low, high) in found.items():
            held[name] += low <= rate <= high
    return {name: count / repeats for name, count in held.items()}


def quantiles(values):
    """Return the central 95 % of bootstrap values."""
    return tuple(np.quantile(values, [0.025, 0.975]))

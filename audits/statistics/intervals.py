"""Confidence intervals for attacks on several target models.

The target is the unit that varies, and there are few of them, so an interval is chosen by how often it holds the true
value. Simulated with 50 + 50 points a target, true AUCs that vary by target (sd 0–.04), 1 000 repeats each; share of
nominal 95 % intervals that hold the truth, lowest to highest over the cases:

===========================================  ===========  ===========
AUC                                          5 targets    8 targets
===========================================  ===========  ===========
t over per-target AUCs (table's interval)    .937–.945    .938–.949
percentile bootstrap over targets            .819–.823    .872–.892
bootstrap over targets, then points          .983–.995    .992–1.00
t by jackknife, pooled scores                .870–.949    .763–.952
percentile bootstrap, pooled scores          .808–.825    .729–.891
DeLong on pooled points (ignores targets)    .863–.936    .772–.953
===========================================  ===========  ===========

===========================================  ===========  ===========
Rate of 5 % or 20 % (TPR, found FPR)         5 targets    8 targets
===========================================  ===========  ===========
effective-size Clopper–Pearson (table's)     .987–.998    .967–.989
t over per-target rates                      .925–.944    .912–.944
percentile bootstrap over targets            .810–.845    .869–.893
Clopper–Pearson over all points              .841–.966    .828–.956
===========================================  ===========  ===========

The tables therefore take :func:`ibragimov_mueller_t` for AUCs and :func:`clustered_rate` for rates, and show the
bootstrap and the binomial interval beside them. To repeat:
``pytest tests/audits/statistics/test_evaluation.py -m long -s``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.errors import BadInput
from audits.statistics.placements import placements
from audits.statistics.roc import wins

Statistic = Callable[[Floats], Floats]  # cluster multiplicities (draws, G) -> values (draws,)


def clopper_pearson(successes: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a rate; counts may be fractional (randomised calls, effective sizes)."""
    from scipy.special import betaincinv

    if not 0 <= successes <= trials or trials <= 0:
        raise BadInput(f"{successes} successes in {trials} trials is not a rate")
    tail = (1.0 - level) / 2.0
    low = 0.0 if successes <= 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes >= trials else float(betaincinv(successes + 1, trials - successes, 1.0 - tail))
    return low, high


def student_quantile(level: float, degrees: float) -> float:
    """Return the two-sided Student t quantile of a confidence ``level``."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + level / 2.0))


def ibragimov_mueller_t(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return mean ± t·s/√G of one value per target (Ibragimov and Müller 2010), G − 1 degrees of freedom.

    It stays valid when the targets differ in variance. Needs at least two targets.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size < 2:
        raise BadInput(f"an interval over targets needs at least two targets, got {numbers.size}")
    half = student_quantile(level, numbers.size - 1) * numbers.std(ddof=1) / math.sqrt(numbers.size)
    return float(numbers.mean() - half), float(numbers.mean() + half)


def nested_t(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the t interval of the mean of ``values`` (S, P), P units (pools) nested in each of S repetitions (seeds).

    Over the means of the repetitions, S − 1 degrees of freedom (Ibragimov and Müller 2010): valid whether units of one
    repetition have something in common or not. A t interval over all S·P values as if they were independent is too
    short where they have: with 5 × 5 values and repetitions that vary as much as units do, it holds the truth in .73 of
    2 000 simulations where .95 is promised, this one in .95 (``test_evaluation.py``). Raises BadInput for fewer than
    two repetitions and for values that are no table.
    """
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 2 or numbers.shape[1] < 1:
        raise BadInput(f"values have shape {numbers.shape}; allowed: (repetitions, units), one unit or more each")
    return ibragimov_mueller_t(numbers.mean(axis=1), level)


def cluster_jackknife_t(statistic: Statistic, clusters: int, level: float = 0.95) -> tuple[float, float]:
    """Return the delete-one-cluster jackknife interval with Student t on G − 1 degrees of freedom.

    ``statistic`` maps multiplicities of the clusters (draws, G) to values (draws,). For the mean of one value per
    cluster it is the same interval as :func:`ibragimov_mueller_t`.
    """
    if clusters < 2:
        raise BadInput(f"an interval over targets needs at least two targets, got {clusters}")
    whole = float(statistic(np.ones((1, clusters)))[0])
    without = statistic(1.0 - np.eye(clusters))
    error = math.sqrt((clusters - 1) / clusters * float(((without - without.mean()) ** 2).sum()))
    half = student_quantile(level, clusters - 1) * error
    return whole - half, whole + half


def bootstrap_weights(clusters: int, draws: int, seed: int) -> Floats:
    """Return (draws, G): how often each cluster is taken in each resample with replacement."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1.0 / clusters), size=draws).astype(np.float64)


def cluster_bootstrap(
    statistic: Statistic, clusters: int, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile interval of ``statistic`` under resampling of whole clusters (target models).

    ``statistic`` maps multiplicities of the clusters (draws, G) to values (draws,): see :func:`mean_over_clusters` and
    :func:`pooled_auc`. With few clusters it covers less than it promises (module docstring).
    """
    values = statistic(bootstrap_weights(clusters, draws, seed))
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def mean_over_clusters(values: ArrayLike) -> Statistic:
    """Return the statistic "mean of one value per cluster"."""
    numbers = np.asarray(values, dtype=np.float64)
    return lambda weights: np.asarray(weights @ numbers / weights.sum(axis=1))


def pooled_auc(wins: Floats, pairs: Floats) -> Statistic:
    """Return the statistic "AUC of the pooled scores" from :func:`audits.statistics.roc.pairwise_wins`."""

    def statistic(weights: Floats) -> Floats:
        won = np.einsum("bg,gh,bh->b", weights, wins, weights, optimize=True)
        return np.asarray(won / np.einsum("bg,gh,bh->b", weights, pairs, weights, optimize=True))

    return statistic


def clustered_rate(successes: ArrayLike, trials: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a rate counted in clusters: Clopper–Pearson on the effective sample size.

    Korn and Graubard (1998): the size is divided by the design effect (variance between clusters over binomial
    variance, at least 1) and by the squared ratio of the Student quantiles on G − 1 and on n − 1 degrees of freedom; at
    a rate of exactly 0 or 1, where no variance can be seen, the full size is kept. ``successes`` and ``trials`` have
    one entry per cluster; one cluster alone gives Clopper–Pearson over its points.
    """
    return clopper_pearson(*effective_counts(successes, trials, level), level)


def effective_counts(successes: ArrayLike, trials: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return (successes, trials) that a rate counted in clusters is worth: see :func:`clustered_rate`."""
    hits = np.asarray(successes, dtype=np.float64)
    sizes = np.asarray(trials, dtype=np.float64)
    total, size = float(hits.sum()), float(sizes.sum())
    rate = total / size
    if hits.size < 2 or not 0.0 < rate < 1.0:
        return total, size
    groups = hits.size
    variance = groups / (groups - 1) * float(((hits - rate * sizes) ** 2).sum()) / size**2
    effect = max(1.0, variance / (rate * (1.0 - rate) / size))
    quantiles = student_quantile(level, size - 1) / student_quantile(level, groups - 1)
    effective = size / effect * quantiles**2
    return rate * effective, effective


def delong_interval(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return DeLong's normal interval of the AUC over the points of one target; it says nothing about other targets."""
    values = np.asarray(scores, dtype=np.float64)
    flags = np.asarray(member).astype(bool)
    inside, outside = int(flags.sum()), int((~flags).sum())
    if min(inside, outside) < 2:
        return 0.0, 1.0
    placed = placements(values, flags)
    area = wins(values[flags], values[~flags]) / (inside * outside)
    error = math.sqrt(placed[flags].var(ddof=1) / inside + placed[~flags].var(ddof=1) / outside)
    half = student_quantile(level, 1e9) * error
    return max(0.0, area - half), min(1.0, area + half)

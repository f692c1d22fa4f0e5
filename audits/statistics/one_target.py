"""Intervals of what an attack shows of one given model: over points and over shadows, and over nothing else.

Whoever audits one model has no targets to take an interval over. Two things would come out otherwise if the audit were
made again of the same model: which points were asked about, and which shadows the attack was fitted to. The variance of
the former is that of points given the scores (DeLong's for an AUC, binomial for a rate), that of the latter is found by
the delete-a-group jackknife: the attack judges again without each group of its shadows in turn. The two are added. Such
an interval says nothing about other models, of the same training either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.errors import BadInput
from audits.statistics.controls import beside_known, interval_p
from audits.statistics.intervals import clopper_pearson, student_quantile
from audits.statistics.placements import placements
from audits.statistics.roc import as_scores, auc

SAYS = (
    "One given model was audited: intervals are over points and shadows, and say nothing about other models, "
    "not even of the same training."
)
"""The sentence that stands wherever these intervals do."""

Interval = tuple[float, float, float]
"""A number, and the ends of its interval."""


def one_target_auc(
    scores: ArrayLike, member: ArrayLike, without: Sequence[ArrayLike] = (), level: float = 0.95
) -> Interval:
    """Return the AUC of ``scores`` (n,) against ``member`` (n,) and its interval over points and shadows.

    ``without``: scores (n,) of the same points by the same attack with each group of its shadows left out in turn; none
    of an attack without shadows. Where members and others are told apart without a mistake, no variance can be seen:
    the lower end is then that of a rate of the smaller group.
    """
    values, flags = as_scores(scores, member)
    return area_interval(values, flags, [auc(np.asarray(each, np.float64), flags) for each in without], level)


def area_interval(scores: ArrayLike, member: ArrayLike, without: Sequence[float] = (), level: float = 0.95) -> Interval:
    """Return the same; ``without``: the AUCs with each group of shadows left out in turn."""
    values, flags = as_scores(scores, member)
    area, inside = auc(values, flags), int(flags.sum())
    smaller = min(inside, flags.size - inside)
    if area in (0.0, 1.0) or smaller < 2:
        return area, *clopper_pearson(area * smaller, smaller, level)
    placed = placements(values, flags)
    points = placed[flags].var(ddof=1) / inside + placed[~flags].var(ddof=1) / (flags.size - inside)
    shadows = jackknife_variance(without)
    half = math.sqrt(points + shadows) * quantile(points, smaller - 1, shadows, len(without) - 1, level)
    return area, max(0.0, area - half), min(1.0, area + half)


def area_p(permuted: float, area: Interval, level: float = 0.95) -> float:
    """Return the two-sided p-value of "the AUC is ½": the larger of the permuted points' and of the interval's.

    Permutations of points hold the shadows still. Where they alone made the difference, an AUC would be called off
    chance beside an interval that holds ½.
    """
    return max(permuted, interval_p(*area, null=0.5, level=level, degrees=1e9))


def one_target_rate(calls: ArrayLike, without: Sequence[ArrayLike] = (), level: float = 0.95) -> Interval:
    """Return the mean of ``calls`` (n,), probabilities of saying "member", and its interval over points and shadows.

    ``without``: the calls with each group of shadows left out in turn, or their means. Clopper–Pearson on the effective
    sample size: n divided by the design effect, both variances over the binomial one (Korn and Graubard 1998); at a
    rate of 0 or 1, where no variance can be seen, n counts in full.
    """
    rate, effective = effective_size(calls, without, level)
    return rate, *clopper_pearson(rate * effective, effective, level)


def one_target_rate_p(
    calls: ArrayLike,
    promised: float,
    without: Sequence[ArrayLike] = (),
    level: float = 0.95,
    *,
    below: bool = False,
    known: int = 0,
) -> float:
    """Return the one-sided p-value of "the true rate is at most ``promised``" (``below``: at least), as its interval.

    At most (1 − level)/2 exactly where the lower (upper) end of ``one_target_rate`` is at least (at most) ``promised``,
    unless ``known`` points set the threshold (``audits.statistics.controls.beside_known``).
    """
    from scipy.special import betainc

    rate, size = effective_size(calls, without, level)
    size = beside_known(rate * size, size, known)[1]
    many, odds = (size - rate * size, 1.0 - promised) if below else (rate * size, promised)
    return 1.0 if many <= 0.0 else float(betainc(many, size - many + 1.0, odds))


def effective_size(calls: ArrayLike, without: Sequence[ArrayLike] = (), level: float = 0.95) -> tuple[float, float]:
    """Return the mean of ``calls``, and how many independent calls would make it as certain (``one_target_rate``)."""
    found = np.asarray(calls, np.float64)
    if found.ndim != 1 or not found.size:
        raise BadInput(f"calls have shape {found.shape}; allowed: (n,), one point or more")
    rate, size = float(found.mean()), float(found.size)
    if not 0.0 < rate < 1.0:
        return rate, size
    points = rate * (1.0 - rate) / size
    shadows = jackknife_variance([float(np.asarray(each, np.float64).mean()) for each in without])
    quantiles = student_quantile(level, 1e9) / quantile(points, 1e9, shadows, len(without) - 1, level)
    return rate, size * points / (points + shadows) * quantiles**2


def jackknife_variance(values: Sequence[float]) -> float:
    """Return the delete-a-group jackknife variance of a number; ``values``: what it is without each of the groups."""
    if len(values) < 2:
        return 0.0
    found: Floats = np.asarray(values, np.float64)
    return float((found.size - 1) / found.size * ((found - found.mean()) ** 2).sum())


def quantile(first: float, first_degrees: float, second: float, second_degrees: float, level: float) -> float:
    """Return the Student quantile of a sum of two variances (Welch–Satterthwaite degrees of freedom)."""
    parts = [(first, first_degrees), (second, second_degrees)]
    told = sum(variance**2 / degrees for variance, degrees in parts if degrees > 0)
    return student_quantile(level, min(1e9, (first + second) ** 2 / told) if told > 0 else 1e9)

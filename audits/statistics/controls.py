"""The rule by which every audit judges its controls: cells in which nothing may be found, or a rate is promised.

Of many such cells some lie off by luck. A cell therefore alarms only where its p-value stays at or below 1 − level
after Holm's correction over all fair cells of the run, whatever its settings (Holm 1979 needs no independence).
p-values of areas come from where their intervals come from: permutations, or Student's t over pools. Those of promised
rates allow for the clustering that the interval of the rate allows for:

- :func:`rate_p`, :func:`interval_p`: the tail of the interval that a result shows, whatever it was made of;
- :func:`clustered_rate_p`: Clopper–Pearson on the effective sample size of
  :func:`audits.statistics.intervals.clustered_rate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from audits.statistics.intervals import effective_counts
from audits.statistics.null import holm


def rate_p(rate: float, low: float, promised: float, level: float, degrees: float) -> float:
    """Return the one-sided p-value of "the true rate is at most ``promised``", from the lower end of its interval.

    ``low``: lower end of the two-sided interval of confidence ``level``. Between it and the rate the error is taken to
    have the shape of Student's t on ``degrees`` degrees of freedom (the scarcest thing resampled, minus one), so that
    p = (1 − level)/2 exactly where ``low`` = ``promised``. Bootstrap draws alone would give no p-value below 1/draws,
    too coarse for a correction over many cells. 1 where the rate keeps the promise.
    """
    from scipy.special import stdtr, stdtrit

    if rate <= promised:
        return 1.0
    if low >= rate:
        return 0.0 if low > promised else 1.0
    error = (rate - low) / float(stdtrit(degrees, 0.5 + level / 2.0))
    return float(stdtr(degrees, -(rate - promised) / error))


def interval_p(value: float, low: float, high: float, null: float, level: float, degrees: float) -> float:
    """Return the two-sided p-value of "the true value is ``null``" that a t interval of confidence ``level`` implies.

    ``low``, ``high``: its ends, one of which may have been cut where the scale ends. 1 − ``level`` exactly where an end
    is at ``null``.
    """
    from scipy.special import stdtr, stdtrit

    half, away = max(value - low, high - value), abs(value - null)
    if half <= 0.0:
        return 0.0 if away > 0.0 else 1.0
    return min(1.0, 2.0 * float(stdtr(degrees, -away / half * float(stdtrit(degrees, 0.5 + level / 2.0)))))


def clustered_rate_p(
    successes: ArrayLike,
    trials: ArrayLike,
    promised: float,
    level: float = 0.95,
    *,
    below: bool = False,
    known: int = 0,
) -> float:
    """Return the one-sided p-value of "the promised rate is at most ``promised``" for a rate counted in clusters.

    P(at least as many successes | ``promised``) at the effective sample size of ``clustered_rate`` at ``level``: at
    most (1 − level)/2 exactly where the lower end of that interval is at least ``promised``. ``below``: of "the true
    rate is at least ``promised``", P(at most as many successes), and the upper end. ``known``: see ``beside_known``.
    """
    from scipy.special import betainc

    hits, size = beside_known(*effective_counts(successes, trials, level), known)
    many, odds = (size - hits, 1.0 - promised) if below else (hits, promised)
    return 1.0 if many <= 0 else float(betainc(many, size - many + 1.0, odds))


def beside_known(hits: float, size: float, known: int) -> tuple[float, float]:
    """Return (hits, size) of a rate whose threshold was set by so many ``known`` points; 0: it was not.

    The rate at a threshold set by N points at the promise α varies by about α(1 − α)/N from one draw of them to the
    next, which adds to the α(1 − α)/n of counting: n points are worth n·N/(n + N). The interval of the rate at *this*
    threshold is no wider for it; whether a promise was kept, which is one on average over thresholds, is less sure.
    """
    worth = size * known / (size + known) if known else size
    return hits / size * worth, worth


def corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values after Holm's correction over those that are known; None stays None."""
    known = [place for place, p in enumerate(p_values) if p is not None]
    found: list[float | None] = [None] * len(p_values)
    for place, adjusted in zip(known, holm(np.array([p_values[place] for place in known])).tolist(), strict=True):
        found[place] = adjusted
    return found


def off(p_holm: float | None, level: float) -> bool:
    """Say whether a cell alarms: its p-value is known and at most 1 − ``level`` after the correction."""
    return p_holm is not None and not math.isnan(p_holm) and p_holm <= 1.0 - level

"""Power of a null result: the smallest effect that an audit of this size and noise would have told from chance."""

from __future__ import annotations

import math

POWER = 0.8
"""The probability with which an effect called detectable would have been found."""


def detectable_shift(error: float, degrees: float, level: float, power: float = POWER) -> float:
    """Return the smallest distance from chance that a t interval of confidence ``level`` would have told from it.

    ``error``: how far the interval reaches from its estimate towards chance. With a standard error s of ``degrees``
    degrees of freedom the interval leaves chance out with probability ``power`` where the truth lies s·(t_level +
    t_power) away. The standard error is the run's own, so that the answer is as uncertain as that is.
    """
    from scipy.special import stdtrit

    certain = float(stdtrit(degrees, 0.5 + level / 2.0))
    return error * (1.0 + float(stdtrit(degrees, power)) / certain)


def detectable_auc(
    members: float,
    others: float,
    units: int,
    error: float,
    level: float,
    tests: int = 1,
    power: float = POWER,
) -> float:
    """Return the smallest AUC that a permutation test would have found above ½; 1 or more where none would.

    The mean of ``units`` AUCs, each of ``members`` against ``others`` points, varies under permutation by
    √((members + others + 1)/(12·members·others·units)) (Mann–Whitney, no ties). Of ``tests`` tests that are corrected
    together each must reach (1 − level)/tests, two-sided; Holm's steps ask for no more. On the other side of the
    threshold the estimate varies by ``error``, its standard error over units, or by permutation where that is more.
    """
    from scipy.special import ndtri

    chance = math.sqrt((members + others + 1.0) / (12.0 * members * others * units))
    threshold = float(ndtri(1.0 - (1.0 - level) / (2.0 * tests))) * chance
    return 0.5 + threshold + float(ndtri(power)) * max(error, chance)

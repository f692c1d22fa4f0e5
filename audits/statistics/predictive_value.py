"""Positive predictive value: how many of those that an attack calls members are, where few of all points are members.

An audit asks as many members as non-members, an attacker looks through a crowd. At a prior π the value is
π·TPR / (π·TPR + (1 − π)·FPR).
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from audits.errors import BadInput
from audits.statistics.intervals import clustered_rate

Interval = tuple[float, float]


def predictive_value(tpr: float, fpr: float, prior: float) -> float | None:
    """Return the positive predictive value at ``prior``; None where nobody is called."""
    if not 0.0 < prior < 1.0:
        raise BadInput(f"prior {prior} must lie between 0 and 1")
    hits, alarms = prior * tpr, (1.0 - prior) * fpr
    return None if hits + alarms == 0.0 else hits / (hits + alarms)


def predictive_interval(
    hits: ArrayLike, members: ArrayLike, alarms: ArrayLike, others: ArrayLike, prior: float, level: float = 0.95
) -> Interval:
    """Return the interval of the positive predictive value from calls counted by target (G,).

    The value grows with the TPR and falls with the FPR, so that the box of their intervals, each at 1 − (1 −
    ``level``)/2, gives its ends: it holds the value in ``level`` of cases or more (Bonferroni).
    """
    each = 1.0 - (1.0 - level) / 2.0
    tpr, fpr = clustered_rate(hits, members, each), clustered_rate(alarms, others, each)
    low = predictive_value(tpr[0], fpr[1], prior)
    high = predictive_value(tpr[1], fpr[0], prior)
    return (0.0 if low is None else low), (1.0 if high is None else high)

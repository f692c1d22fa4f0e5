"""Means, intervals and differences of a run: the pool is the unit, the mean of its twins its value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.null import holm
from audits.statistics.summary import paired_difference
from orchestrator.judgement.estimate import Estimate

R = TypeVar("R", bound=Any)
Found = dict[str, Any]
"""The content of an artefact of a stage."""
Assessments = dict[str, list[Found]]
"""Arm → what stage assess found, pool by pool."""


class Place(NamedTuple):
    """A place in the table of AUCs: who is told apart, by which attack, what its shadows know, and when."""

    group: str
    attack: str
    shadows: str
    moment: str


RATE, CORRELATION = (0.0, 1.0), (-1.0, 1.0)
"""What a rate and an AUC, and what a correlation and a difference of rates can be."""


def pool_means(pools: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Return the mean of each pool's targets; None where one is not defined."""
    return [None if None in pool else sum(float(value or 0) for value in pool) / len(pool) for pool in pools]


def interval(
    values: Sequence[float | None], level: float, within: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Return mean and t interval of values by pool; no interval of a single one, nothing where one is missing.

    Ends that no value can have, outside ``within``, are cut: with two pools a t interval is longer than the scale.
    """
    known = [float(value) for value in values if value is not None]
    if not known or len(known) < len(values):
        return Estimate()
    mean = sum(known) / len(known)
    if len(known) == 1:
        return Estimate(mean)
    low, high = ibragimov_mueller_t(known, level)
    return Estimate(mean, max(float(low), within[0]), min(float(high), within[1]))


def paired(
    values: Sequence[float | None], others: Sequence[float | None], level: float
) -> tuple[Estimate, float | None]:
    """Return the mean of ``values`` − ``others``, paired by pool, with interval and p; the latter None of one pool."""
    a, b = ({pool: float(value or 0) for pool, value in enumerate(each)} for each in (values, others))
    if len(a) == 1:
        return Estimate(a[0] - b[0]), None
    found = paired_difference(a, b, level)
    return Estimate(found.mean, found.low, found.high), found.p


def corrected(rows: Sequence[R], family: Sequence[str]) -> list[R]:
    """Return rows with ``p_holm``: ``p`` after Holm's correction over the rows that agree in the fields ``family``."""
    families: dict[tuple[Any, ...], list[int]] = {}
    found = list(rows)
    for place, row in enumerate(rows):
        if row.p is not None:
            families.setdefault(tuple(getattr(row, name) for name in family), []).append(place)
    for places in families.values():
        for place, value in zip(places, holm([rows[place].p for place in places]).tolist(), strict=True):
            found[place] = replace(rows[place], p_holm=value)
    return found


def mean(values: Any) -> float:
    """Return the mean of a few numbers."""
    listed = [float(value) for value in values]
    return sum(listed) / len(listed)

"""From values of targets to numbers of a run: the pool is the unit, the mean of its twins its value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from audits.evaluation.summary import Difference


Row = dict[str, Any]
Assessments = dict[str, list[Row]]
"""Arm → what stage assess found, pool by pool."""


class Place(NamedTuple):
    """A place in the table of AUCs: who is told apart, by which attack, what its shadows know, and when."""

    group: str
    attack: str
    shadows: str
    moment: str


RATE, CORRELATION = (0.0, 1.0), (-1.0, 1.0)
"""What a rate and an AUC, and what a correlation and a difference of rates can be."""


@dataclass(frozen=True)
class Interval:
    """A mean over pools with its t interval; None where it is not defined."""

    mean: float | None
    low: float | None
    high: float | None

    def row(self, name: str) -> dict[str, float | None]:
        """Return ``name``, ``name_low`` and ``name_high``."""
        return self.named(name, f"{name}_low", f"{name}_high")

    def named(self, mean: str, low: str, high: str) -> dict[str, float | None]:
        """Return the three numbers under names."""
        return {mean: self.mean, low: self.low, high: self.high}


def pool_means(pools: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Return the mean of each pool's targets; None where one is not defined."""
    return [None if None in pool else sum(float(value or 0) for value in pool) / len(pool) for pool in pools]


def interval(
    values: Sequence[float | None], level: float, within: tuple[float, float] = (-math.inf, math.inf)
) -> Interval:
    """Return mean and t interval of values by pool; no interval of a single one, nothing where one is missing.

    Ends that no value can have, outside ``within``, are cut: with two pools a t interval is longer than the scale.
    """
    from audits.evaluation.intervals import ibragimov_mueller_t

    known = [float(value) for value in values if value is not None]
    if not known or len(known) < len(values):
        return Interval(None, None, None)
    mean = sum(known) / len(known)
    if len(known) == 1:
        return Interval(mean, None, None)
    low, high = ibragimov_mueller_t(known, level)
    return Interval(mean, max(float(low), within[0]), min(float(high), within[1]))


@dataclass(frozen=True)
class Paired:
    """A mean difference with interval and p-value; the latter None of a single pool."""

    mean: float
    low: float | None
    high: float | None
    p: float | None


def paired(values: Sequence[float | None], others: Sequence[float | None], level: float) -> Paired:
    """Return the mean of ``values`` − ``others``, paired by pool."""
    from audits.evaluation.summary import paired_difference

    a, b = ({pool: float(value or 0) for pool, value in enumerate(each)} for each in (values, others))
    if len(a) == 1:
        return Paired(a[0] - b[0], None, None, None)
    found: Difference = paired_difference(a, b, level)
    return Paired(found.mean, found.low, found.high, found.p)


def corrected(rows: list[dict[str, Any]], family: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows with ``p_holm``: ``p`` after Holm's correction over the rows that agree in the columns ``family``."""
    from audits.evaluation.null import holm

    families: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    found = [{**row, "p_holm": None} for row in rows]
    for row in found:
        if row["p"] is not None:
            families.setdefault(tuple(row[name] for name in family), []).append(row)
    for each in families.values():
        for row, value in zip(each, holm([row["p"] for row in each]).tolist(), strict=True):
            row["p_holm"] = value
    return found


def mean(values: Any) -> float:
    """Return the mean of a few numbers."""
    listed = [float(value) for value in values]
    return sum(listed) / len(listed)

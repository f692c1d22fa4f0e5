"""Differences of one metric between two runs, paired in whatever the runs share.

A metric of a run is a mean of contributions of targets, and within a target of points (its influence function: for
the AUC the placements of DeLong, for rates the calls). The difference of two runs is such a mean as well: a target that
both runs asked about the same points, with the same members, contributes once, with the difference of its
two contributions; so does a point that several targets or both runs were asked about. What is shared cancels where the
runs agree, and what is not shared adds up. The variance is

    V = G/(G − 1) · Σ over targets (contribution)²  +  max(0, Σ over points (…)² − Σ over targets and points (…)²),

targets (which carry the noise of their own points), and what points have in common across targets; contributions of
points are those within their target, its own mean taken away. The sum is that of two-way clustering (Cameron, Gelbach
and Miller, JBES 29, 2011) with Student's t on the degrees of freedom of the targets: G − 1 for G shared ones, Welch's
otherwise. Of a single target only the points vary: DeLong's variance of paired, or of unpaired, curves.

Share of nominal 95 % intervals that hold the true difference, lowest to highest over AUC, TPR and AUC of runs that do
not differ, and share of the latter called different at .05; 8 targets (sd of their luck .15), points that add .5 to
their scores, 300 simulations each, so that shares are known to ± .025:

=============================================  ============  ======
what the runs share                            hold          differ
=============================================  ============  ======
targets and their points                       .947–.960     .050
targets, whose points are the same for all     .957–.960     .043
points, the same for all targets               .950–.967     .040
nothing                                        .940–.957     .043
nothing; points the same for all targets       .937–.977     .023
the one target and its points                  .930–.970     .030
nothing, one target each                       .940–.967     .033
=============================================  ============  ======

To repeat: ``pytest tests/audits/statistics/test_paired.py -m long -s``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.statistics.intervals import student_quantile
from audits.statistics.judged import Judged, rows_by
from audits.statistics.placements import placements

AUC, TPR, FPR, PRECISION = "auc", "tpr", "fpr", "precision"
METRICS = (AUC, TPR, FPR, PRECISION)
ROUNDING = 1e-12
"""What sums in another order may differ by: far below the contribution of one point."""


@dataclass(frozen=True)
class Measured:
    """A metric of one run with its contributions: ``value`` is it, ``units`` (G,) name what varies.

    ``whole`` (G,): contribution of each unit, Σ = 0 on average; ``unit`` (n,): the unit of each row, as a place in
    ``units``; ``part`` (n,): contribution of the row within its unit; ``point`` (n,): ids, None where none is known.
    """

    value: float
    units: NDArray[Any] = field(repr=False)
    whole: Floats = field(repr=False)
    unit: NDArray[np.int64] = field(repr=False)
    part: Floats = field(repr=False)
    point: NDArray[Any] | None = field(repr=False)

    @property
    def varies(self) -> bool:
        """Whether any row or unit is seen to differ from another."""
        return max(float(np.abs(each).max()) * each.size for each in (self.whole, self.part)) > ROUNDING


@dataclass(frozen=True)
class Difference:
    """A metric of run ``a`` minus that of run ``b``; neither interval nor p-value where nothing varies, but p = 1 of 0.

    ``shared``: targets that are in both; ``degrees``: of freedom, None over points; ``shared_points``: of both runs.
    """

    a: float
    b: float
    low: float | None
    high: float | None
    p: float | None
    shared: int
    targets: tuple[int, int]
    shared_points: int
    degrees: float | None

    @property
    def value(self) -> float:
        """The difference."""
        return self.a - self.b


def measured(judged: Judged, metric: str, decision: str = "") -> Measured:
    """Return a metric of what an attack said, ``decision`` naming the calls of a rate.

    ``auc``: mean over units of the mean AUC of their targets; ``tpr``, ``fpr`` and ``precision``: calls of all targets
    together. Raises BadInput where precision is 0/0.
    """
    if metric == AUC:
        return _area(judged)
    if metric not in METRICS:
        raise BadInput(f"no metric {metric!r}; allowed: {', '.join(METRICS)}")
    calls, member = judged.decisions[decision], judged.member
    if metric == PRECISION:
        total = float(calls.sum())
        if not total:
            raise BadInput(f"precision of {judged.attack} is 0/0: it calls nobody a member")
        value = float(calls[member].sum()) / total
        return _of_rows(judged, value, calls * (member - value) / total)
    counted = member if metric == TPR else ~member
    value = float(calls[counted].mean())
    return _of_rows(judged, value, np.where(counted, calls - value, 0.0) / counted.sum())


def _of_rows(judged: Judged, value: float, rows: Floats) -> Measured:
    """Return a metric whose contributions are those of its rows, added up."""
    units, unit = np.unique(judged.unit, return_inverse=True)
    whole: Floats = np.bincount(unit, weights=rows, minlength=units.size).astype(np.float64)
    part = rows.copy()
    for own in rows_by(judged.target):
        for kind in (judged.member[own], ~judged.member[own]):
            part[own[kind]] = _spread(rows[own[kind]])
    return Measured(value, units, whole, unit, part, judged.point)


def _area(judged: Judged) -> Measured:
    units, unit = np.unique(judged.unit, return_inverse=True)
    part, areas, targets = np.empty(len(judged.scores)), np.zeros(units.size), np.zeros(units.size)
    parts = rows_by(judged.target)
    for own in parts:
        targets[unit[own[0]]] += 1
    for own in parts:
        inside = judged.member[own]
        placed = placements(judged.scores[own], inside)
        place = unit[own[0]]
        areas[place] += placed[inside].mean() / targets[place]
        share = 1.0 / (units.size * targets[place])
        part[own[inside]] = share * _spread(placed[inside]) / inside.sum()
        part[own[~inside]] = share * _spread(placed[~inside]) / (~inside).sum()
    return Measured(float(areas.mean()), units, (areas - areas.mean()) / units.size, unit, part, judged.point)


def _spread(values: Floats) -> Floats:
    """Return values minus their mean, a little larger so that their squares have the mean of an unbiased variance."""
    size = values.size
    return np.zeros(size) if size < 2 else (values - values.mean()) * math.sqrt(size / (size - 1))


def difference(a: Measured, b: Measured, shared: Sequence[Any], points: bool = True, level: float = 0.95) -> Difference:
    """Return ``a`` minus ``b``; units named in ``shared`` are one, and points of one id where ``points`` says so."""
    of_a, of_b = _joint(a.units, b.units, np.isin(a.units, shared), np.isin(b.units, shared))
    whole = np.zeros(max(of_a.max(), of_b.max()) + 1)
    np.add.at(whole, of_a, a.whole)
    np.add.at(whole, of_b, -b.whole)
    sizes, common = (a.units.size, b.units.size), len(shared)
    cells = _cells(a, b, of_a, of_b, points)
    if min(sizes) < 2:
        variance, degrees = cells.points, None
    else:
        squares = whole**2
        both = np.isin(np.arange(whole.size), np.intersect1d(of_a, of_b))
        only_a, only_b = np.isin(np.arange(whole.size), of_a) & ~both, np.isin(np.arange(whole.size), of_b) & ~both
        parts = [(float(squares[own].sum()), size) for own, size in
                 ((both, min(sizes)), (only_a, sizes[0]), (only_b, sizes[1])) if own.any()]  # fmt: skip
        terms = [(total * size / (size - 1), size - 1) for total, size in parts]
        over_targets = sum(term for term, _ in terms)
        below = sum(term**2 / free for term, free in terms)
        degrees = over_targets**2 / below if below > 0 else float(min(sizes) - 1)
        variance = over_targets + max(0.0, cells.points - cells.both)
    low, high, p = _ends_and_p(a.value - b.value, variance, degrees, level, a.varies or b.varies)
    return Difference(a.value, b.value, low, high, p, common, sizes, cells.shared, degrees)


def _ends_and_p(
    value: float, variance: float, degrees: float | None, level: float, varies: bool
) -> tuple[float | None, float | None, float | None]:
    """Return ends and p-value of a difference.

    Where no difference is seen to vary there are none; but what ``varies`` in both alike cancels, and is surely 0.
    """
    from scipy.special import ndtr, stdtr

    error = math.sqrt(max(0.0, variance))
    if error <= ROUNDING:
        zero = abs(value) <= ROUNDING
        return (0.0, 0.0, 1.0) if zero and varies else (None, None, 1.0 if zero else None)
    half = student_quantile(level, 1e9 if degrees is None else degrees) * error
    far = -abs(value) / error
    tail = float(ndtr(far) if degrees is None else stdtr(degrees, far))
    return max(-1.0, value - half), min(1.0, value + half), 2.0 * tail


def _joint(
    first: NDArray[Any], second: NDArray[Any], same_first: Bools, same_second: Bools
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numbers of names that agree exactly where both are among the ``same``."""
    number: dict[Any, int] = {}
    of_first = np.array(
        [
            number.setdefault((name, "" if same else "a"), len(number))
            for name, same in zip(first.tolist(), same_first, strict=True)
        ]
    )
    of_second = np.array(
        [
            number.setdefault((name, "" if same else "b"), len(number))
            for name, same in zip(second.tolist(), same_second, strict=True)
        ]
    )
    return of_first, of_second


@dataclass(frozen=True)
class _Cells:
    """Sums of squares over points, and over points within targets; ``shared``: points of both runs."""

    points: float
    both: float
    shared: int


def _cells(a: Measured, b: Measured, of_a: NDArray[np.int64], of_b: NDArray[np.int64], points: bool) -> _Cells:
    """Return the sums of squares of what rows contribute within their units."""
    unit = np.concatenate([of_a[a.unit], of_b[b.unit]])
    part = np.concatenate([a.part, -b.part])
    rows = len(a.part)
    if points and a.point is not None and b.point is not None:
        whole = [a.point, b.point]
        if any(each.dtype.kind not in "iu" for each in whole):
            whole = [each.astype(str) for each in whole]
        point = np.unique(np.concatenate(whole), return_inverse=True)[1]
        shared = int(np.intersect1d(point[:rows], point[rows:]).size)
    else:
        point, shared = np.concatenate([_own_points(a), rows + _own_points(b)]), 0
    by_point = np.bincount(point, weights=part)
    cell = np.unique(unit * (int(point.max()) + 1) + point, return_inverse=True)[1]
    return _Cells(float((by_point**2).sum()), float((np.bincount(cell, weights=part) ** 2).sum()), shared)


def _own_points(measured: Measured) -> NDArray[np.int64]:
    """Return numbers of a run's points from 0; rows are points of their own where none are named."""
    if measured.point is None:
        return np.arange(len(measured.part))
    return np.unique(measured.point, return_inverse=True)[1]

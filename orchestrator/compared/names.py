"""Names of targets and points of two attacks as numbers, so that no two names become one on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.statistics.judged import Judged


def numbered(one: Judged, other: Judged) -> tuple[Judged, Judged]:
    """Return two attacks whose targets, clusters and points are numbers, equal where the names are equal as text.

    "1" and "01" are two names, 1 and "1" are one; whole numbers of any size stay what they are.
    """
    targets, units = _numbers(one.target, other.target), _numbers(one.unit, other.unit)
    none = np.zeros(0, np.int64)
    points = _numbers(none if one.point is None else one.point, none if other.point is None else other.point)
    clusters = units if one.cluster is not None or other.cluster is not None else (None, None)
    first, second = (
        replace(
            each,
            target=targets[place],
            point=None if each.point is None else points[place],
            cluster=clusters[place],
        )
        for place, each in enumerate((one, other))
    )
    return first, second


def _numbers(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numbers (n,) and (m,) int64 for names."""
    if first.dtype.kind == second.dtype.kind == "i":
        return first.astype(np.int64), second.astype(np.int64)
    known: dict[str | None, int] = {}

    def of(names: NDArray[Any]) -> NDArray[np.int64]:
        texts = (None if name is None else str(name) for name in names.tolist())
        return np.array([known.setdefault(text, len(known)) for text in texts], np.int64)

    return of(first), of(second)

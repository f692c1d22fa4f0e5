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
    targets = _numbers(one.target, other.target)
    points = (None, None) if one.point is None or other.point is None else _numbers(one.point, other.point)
    clusters = (None, None)
    if one.cluster is not None and other.cluster is not None:
        clusters = _numbers(one.cluster, other.cluster)
    elif one.cluster is not None or other.cluster is not None:
        clusters = _numbers(one.unit, other.unit)
    return (
        replace(one, target=targets[0], point=points[0], cluster=clusters[0]),
        replace(other, target=targets[1], point=points[1], cluster=clusters[1]),
    )


def _numbers(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numbers (n,) and (m,) int64 for names."""
    if first.dtype.kind == second.dtype.kind == "i":
        return first.astype(np.int64), second.astype(np.int64)
    known: dict[str | None, int] = {}

    def of(names: NDArray[Any]) -> NDArray[np.int64]:
        texts = (None if name is None else str(name) for name in names.tolist())
        return np.array([known.setdefault(text, len(known)) for text in texts], np.int64)

    return of(first), of(second)

"""Targets that two runs share: those that both asked about the same points, with the same members; and same values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.statistics.judged import Judged, rows_by


def shared_targets(a: Judged, b: Judged) -> list[Any]:
    """Return the units of both runs that were asked about the same points with the same members, by name.

    Points must be named, or nothing is known to be shared.
    """
    if a.point is None or b.point is None:
        return []
    of_a, of_b = _content(a), _content(b)
    return [name for name, content in of_a.items() if of_b.get(name) == content]


@dataclass(frozen=True)
class Same:
    """What two attacks have in common, point by point: their ``scores``, and decisions by name.

    ``hits``, ``alarms``: those whose decisions about members, and about non-members, are the same.
    """

    scores: bool = False
    hits: frozenset[str] = frozenset()
    alarms: frozenset[str] = frozenset()

    @property
    def decisions(self) -> frozenset[str]:
        """Those whose decisions about all points are the same."""
        return self.hits & self.alarms


def same_values(a: Judged, b: Judged) -> Same:
    """Return which values both gave alike to the same points of the same targets, in whatever order of rows.

    Nothing is alike where the points differ, or are not named; of rates only the points that they count matter.
    """
    if a.point is None or b.point is None:
        return Same()
    one, other = (each.on(np.lexsort((each.point, each.target))) for each in (a, b))  # type: ignore[arg-type]
    kinds = [(one.on(own), other.on(theirs)) for own, theirs in _by_kind(one, other)]
    points = [all(np.array_equal(getattr(x, name), getattr(y, name)) for name in ("target", "point")) for x, y in kinds]
    hits, alarms = (_alike(*kind) if same else frozenset[str]() for kind, same in zip(kinds, points, strict=True))
    scores = all(points) and all(np.array_equal(x.scores, y.scores, equal_nan=True) for x, y in kinds)
    return Same(scores, hits, alarms)


def _by_kind(one: Judged, other: Judged) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the rows of both that are of members, and those of non-members."""
    return [(np.flatnonzero(one.member == member), np.flatnonzero(other.member == member)) for member in (True, False)]


def _alike(one: Judged, other: Judged) -> frozenset[str]:
    """Return the names of decisions that are the same row by row."""
    return frozenset(
        name
        for name, values in one.decisions.items()
        if name in other.decisions and np.array_equal(values, other.decisions[name], equal_nan=True)
    )


def _content(judged: Judged) -> dict[Any, bytes]:
    """Return, for each unit, what it was asked about in one order: targets, points and members."""
    assert judged.point is not None
    found = {}
    for rows in rows_by(judged.unit):
        target, point, member = judged.target[rows], judged.point[rows], judged.member[rows]
        order = np.lexsort((point, target))
        columns = (target[order].astype(str), point[order].astype(str), member[order])
        name = judged.unit[rows[0]]
        name = name.item() if isinstance(name, np.generic) else name
        found[name] = "\0".join(["\1".join(map(str, each)) for each in columns]).encode()
    return found

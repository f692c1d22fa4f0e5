"""Targets that two runs share: those that both asked about the same points, with the same members; and same scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from audits.statistics.judged import Judged, rows_by


def shared_targets(a: Judged, b: Judged) -> list[Any]:
    """Return the units of both runs that were asked about the same points with the same members, by name.

    Points must be named, or nothing is known to be shared.
    """
    if a.point is None or b.point is None:
        return []
    of_a, of_b = _content(a), _content(b)
    return [name for name, content in of_a.items() if of_b.get(name) == content]


def same_scores(a: Judged, b: Judged) -> bool:
    """Say whether both gave the same scores and decisions to the same points of the same targets, in whatever order."""
    if a.point is None or b.point is None or a.scores.size != b.scores.size or a.decisions.keys() != b.decisions.keys():
        return False
    one, other = (each.on(np.lexsort((each.point, each.target))) for each in (a, b))  # type: ignore[arg-type]
    names = ("target", "point", "member")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names) and all(
        np.array_equal(values, again, equal_nan=True)
        for values, again in (
            (one.scores, other.scores),
            *((values, other.decisions[name]) for name, values in one.decisions.items()),
        )
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

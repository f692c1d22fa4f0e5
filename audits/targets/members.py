"""The points that a given model was trained on: a file of ids or names, or a rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from audits.arrays import Ids
from audits.data.id_lists import FILES, Listed, read_list, refuse_commented
from audits.data.ids import Points
from audits.errors import BadInput, how_many
from audits.targets.rules import NAMED, RULES, SLICE

FIELD = "target.members"
OTHERS = "non_members"
"""How the field of the points ends that a model was not trained on: of a list that says who was, it takes the rest."""
LEAST = 2


def read_members(members: str, points: Points | int, field: str = FIELD) -> Ids:
    """Return the ids (n,), sorted, of the points that ``members`` names among ``points`` (or as many, without names).

    A rule: ``all``, ``even``, ``odd``, or ``START:STOP`` (ids from START up to, but not, STOP; either may be left out).
    Or a file (``audits.data.id_lists``) of ids or names, or an .npy file with a bool for every point. Where a second
    column says which points were trained on, ``target.non_members`` are the rows that say no, every other ``field`` the
    rows that say yes. Raises BadInput, which names the ``field`` of the plan, for a rule or a file that cannot be read,
    points that are none of the data set or are given twice, and fewer than two.
    """
    among = Points(points) if isinstance(points, int) else points
    ids = by_rule(members, among.count, field)
    if ids is None:
        ids = from_file(members, among, field)
    if len(ids) < LEAST:
        raise BadInput(f"{field}: {members} names {how_many(len(ids), 'point')}; give {LEAST} or more")
    return np.sort(ids)


def by_rule(members: str, points: int, field: str) -> Ids | None:
    """Return the ids that a rule names; None for what is no rule."""
    every = np.arange(points, dtype=np.int64)
    if members in NAMED:
        return {"all": every, "even": every[::2], "odd": every[1::2]}[members]
    bounds = SLICE.fullmatch(members)
    if bounds is None:
        return None
    start, stop = (int(text) if text else end for text, end in zip(bounds.groups(), (0, points), strict=True))
    if start >= stop:
        raise BadInput(f"{field} is {members}, which names no point; START:STOP goes from START up to STOP")
    if stop > points:
        raise BadInput(f"{field} is {members}, but the data set has {points} points; allowed: within 0:{points}")
    return every[start:stop]


def from_file(members: str, points: Points, field: str) -> Ids:
    """Return the ids that a file names, in its order."""
    if Path(members).suffix not in FILES:
        raise BadInput(f"{field} is {members!r}; allowed: {RULES}, or a file of ids or names ({', '.join(FILES)})")
    what = f"{field}: {members}"
    found = read_list(members, what)
    if not isinstance(found, Listed):
        if len(found) != points.count:
            raise BadInput(f"{what} is an array of {len(found)} bools; the data set has {points.count} points")
        return np.flatnonzero(found).astype(np.int64)
    refuse_commented(found.comments, points, what)
    ids = points.ids(found.points, what)
    if found.member is None:
        return ids
    wanted = found.member != field.endswith(OTHERS)
    if wanted.sum() < LEAST:
        says = "non-members" if field.endswith(OTHERS) else "members"
        raise BadInput(f"{what} says of {wanted.sum()} of {len(ids)} points that they are {says}; needed: {LEAST}")
    said: Ids = ids[wanted]
    return said

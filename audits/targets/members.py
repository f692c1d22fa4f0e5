"""The points that a given model was trained on: a file of ids, or a rule."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from audits.arrays import Ids
from audits.errors import BadInput
from audits.targets.rules import NAMED, RULES, SLICE

FIELD = "target.members"
FILES = (".txt", ".csv", ".npy")
MOST_BYTES = 2**30
LEAST = 2


def read_members(members: str, points: int, field: str = FIELD) -> Ids:
    """Return the ids (n,), sorted, of the points that ``members`` names in a data set of ``points``.

    A rule: ``all``, ``even``, ``odd``, or ``START:STOP`` (ids from START up to, but not, STOP; either may be left out).
    Or a file: .txt with an id a line (blank lines and what follows a # are skipped); .csv with a column ``id``, or with
    one column; .npy with whole numbers (n,), or a bool for every point. Raises BadInput, which names the ``field`` of
    the plan, for a rule or a file that cannot be read, ids that are no points of the data set or are given twice, and
    fewer than two.
    """
    try:
        ids = by_rule(members, points)
        if ids is None:
            ids = from_file(members, points)
        check_ids(ids, members, points)
    except BadInput as error:
        raise BadInput(str(error).replace(FIELD, field)) from None
    return np.sort(ids)


def by_rule(members: str, points: int) -> Ids | None:
    """Return the ids that a rule names; None for what is no rule."""
    every = np.arange(points, dtype=np.int64)
    if members in NAMED:
        return {"all": every, "even": every[::2], "odd": every[1::2]}[members]
    bounds = SLICE.fullmatch(members)
    if bounds is None:
        return None
    start, stop = (int(text) if text else end for text, end in zip(bounds.groups(), (0, points), strict=True))
    if start >= stop:
        raise BadInput(f"target.members is {members}, which names no point; START:STOP goes from START up to STOP")
    if stop > points:
        raise BadInput(f"target.members is {members}, but the data set has {points} points; allowed: within 0:{points}")
    return every[start:stop]


def from_file(members: str, points: int) -> Ids:
    """Return the ids that a file names, in its order."""
    path = Path(members).expanduser()
    if path.suffix not in FILES:
        raise BadInput(f"target.members is {members!r}; allowed: {RULES}, or a file of ids ({', '.join(FILES)})")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(
                f"target.members: {members} has more than {MOST_BYTES / 2**30:.0f} GiB; is it a list of ids?"
            )
        match path.suffix:
            case ".npy":
                with path.open("rb") as file:
                    return from_array(np.lib.format.read_array(file, allow_pickle=False), members, points)
            case ".csv":
                return numbers(from_table(path, members), members)
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except BadInput:
        raise
    except (OSError, ValueError, csv.Error) as error:
        said = (getattr(error, "strerror", None) or str(error)).strip().splitlines()[0]
        raise BadInput(f"target.members: {members} cannot be read: {said}") from None
    told = ((number, line.partition("#")[0].strip()) for number, line in enumerate(lines, start=1))
    return numbers(((number, text) for number, text in told if text), members)


def from_array(found: np.ndarray[tuple[int, ...], np.dtype[np.generic]], members: str, points: int) -> Ids:
    """Return the ids of an array of ids, or of one bool a point."""
    if found.dtype == np.bool_ and found.shape == (points,):
        return np.flatnonzero(found).astype(np.int64)
    if found.ndim == 1 and np.issubdtype(found.dtype, np.integer):
        kept = np.minimum(found, np.uint64(2**63 - 1)) if found.dtype == np.uint64 else found  # too large stays so
        ids: Ids = kept.astype(np.int64)
        return ids
    raise BadInput(
        f"target.members: {members} is an array of {found.dtype} of shape {found.shape}; allowed: whole numbers (n,), "
        f"or a bool for every point of the data set ({points},)"
    )


def from_table(path: Path, members: str) -> Iterable[tuple[int, str]]:
    """Return line number and id of the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if row]
    head = [name.strip() for name in rows[0][1]] if rows else []
    if "id" in head:
        return [
            (number, row[head.index("id")].strip() if len(row) > head.index("id") else "") for number, row in rows[1:]
        ]
    if all(len(row) == 1 for _, row in rows):
        return [(number, row[0].strip()) for number, row in rows]
    raise BadInput(f"target.members: {members} has the columns {', '.join(head)}; needed: id")


def numbers(texts: Iterable[tuple[int, str]], members: str) -> Ids:
    """Return numbered texts as ids."""
    found = []
    for line, text in texts:
        if not text.isdecimal() or len(text) > 18:
            raise BadInput(
                f"target.members: {members}, line {line} is {text[:40]!r}; allowed: the id of a point, a line each (a "
                "heading in a .csv is id)"
            )
        found.append(int(text))
    return np.array(found, np.int64)


def check_ids(ids: Ids, members: str, points: int) -> None:
    """Refuse ids that are no points of a data set, or stand there twice, and too few."""
    outside = ids[(ids < 0) | (ids >= points)]
    if len(outside):
        raise BadInput(
            f"target.members: {members} has id {outside[0]} ({len(outside)} of {len(ids)} ids are outside), but the "
            f"data set has {points} points; allowed: 0 to {points - 1}"
        )
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1]
        raise BadInput(f"target.members: {members} has id {twice[0]} twice ({len(twice)} such ids); give each once")
    if len(ids) < LEAST:
        raise BadInput(f"target.members: {members} names {len(ids)} points; give {LEAST} or more")

"""Points that belong together (one patient, video or author), and how they are dealt into parts as whole groups.

Two images of one patient are alike. Where one of them is trained on and the other counts as never seen, the second is a
member in all but name, and rates among "never seen" points say nothing. So each group stays on one side of every
border: parts are filled with whole groups in random order, and the excess of a part's last group is used nowhere.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.arrays import Bools, Ids
from audits.errors import BadInput

COLUMNS = ("id", "group")
MOST_DIGITS = 18
"""Digits of an id: more make a number that no data set has points for."""


@dataclass(frozen=True)
class Part:
    """A part to be filled with ``size`` points; ``field`` of the plan says so. ``halved``: see ``halves``."""

    field: str
    size: int
    halved: bool = False


def numbered(what: str, values: object, points: int) -> Ids:
    """Return groups as numbers (N,) int64, in the order of their first points, so that their names do not count.

    ``values``: one whole number or text for each of the ``points``. BadInput otherwise; ``what`` says whose they are.
    """
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{what}: groups cannot become an array; give one whole number or name a point") from error
    if given.shape != (points,):
        raise BadInput(f"{what}: groups have shape {given.shape}; needed: ({points},), one for each point")
    if given.dtype.kind == "O" and all(isinstance(value, str | int) for value in given.tolist()):
        given = np.array([str(value) for value in given.tolist()])
    if given.dtype.kind not in "iuUS":
        raise BadInput(f"{what}: groups are {given.dtype}, or some are missing; allowed: whole numbers or names")
    _, first, group = np.unique(given, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[group]


def read_groups(path: str, points: int) -> Ids:
    """Return the groups (N,) of a CSV file (with a header) or a Parquet file with the columns ``id`` and ``group``.

    Each of the ``points`` stands there once, in any order, by its id: its place in the data set, from 0. BadInput when
    the file cannot be read or does not say one group for each point.
    """
    what = f"data.groups {path!r}"
    if Path(path).expanduser().exists() and not Path(path).expanduser().is_file():
        raise BadInput(f"{what} is not a file; give a CSV or Parquet file with the columns id and group")
    ids, names = (_parquet if path.endswith(".parquet") else _csv)(Path(path).expanduser(), what)
    odd = next((one for one in ids if not one.isdecimal() or len(one) > MOST_DIGITS or int(one) >= points), None)
    if odd is not None:
        raise BadInput(f"{what} has the id {odd[:40]!r}; allowed: 0 to {points - 1}, the points of the data set")
    places = np.array([int(one) for one in ids], dtype=np.int64)
    times = np.bincount(places, minlength=points)
    if (times != 1).any():
        wrong = int(np.flatnonzero(times != 1)[0])
        said = f"names point {wrong} {times[wrong]} times" if times[wrong] else f"has no group for point {wrong}"
        raise BadInput(f"{what} {said} ({int((times != 1).sum())} such points); give each of {points} points one line")
    empty = next((one for one, name in zip(ids, names, strict=True) if not name), None)
    if empty is not None:
        raise BadInput(f"{what} has an empty group for point {empty}; name one (a group may be a single point)")
    return numbered(what, np.array(names)[np.argsort(places)], points)


def write_groups(path: str, groups: Ids) -> None:
    """Write ``groups`` (N,) as a CSV file that ``read_groups`` reads; BadInput when it cannot be written."""
    if path.endswith(".parquet"):
        raise BadInput(f"{path} would hold CSV, and files of that name are read as Parquet; give a name ending in .csv")
    lines = [",".join(COLUMNS), *(f"{point},{group}" for point, group in enumerate(groups.tolist()))]
    try:
        Path(path).expanduser().write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}; give the path of a file") from None


def _csv(path: Path, what: str) -> tuple[list[str], list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            _check_columns(rows.fieldnames or (), what)
            lines = [((row["id"] or "").strip(), (row["group"] or "").strip()) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(what, error) from None
    return [one for one, _ in lines], [name for _, name in lines]


def _parquet(path: Path, what: str) -> tuple[list[str], list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(what, error) from None
    _check_columns(table.column_names, what)
    ids, names = (["" if one is None else str(one) for one in table[name].to_pylist()] for name in COLUMNS)
    return ids, names


def _check_columns(found: Sequence[str], what: str) -> None:
    if not set(COLUMNS) <= set(found):
        raise BadInput(f"{what} has the columns {', '.join(found) or '(none)'}; needed: id and group")


def _unreadable(what: str, error: Exception) -> BadInput:
    said = (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip().splitlines()[0]
    return BadInput(f"{what} cannot be read: {said}; give a CSV or Parquet file with the columns id and group")


def check_groups(points: Ids, groups: Ids, parts: Sequence[Part]) -> None:
    """Refuse groups of which one alone would fill a part, or half of one that is halved: it would be cut, not dealt."""
    largest = int(np.bincount(groups[points]).max(initial=0))
    for part in parts:
        room = part.size // 2 if part.halved else part.size
        if 0 < room < largest:
            half = "half of " if part.halved else ""
            raise BadInput(
                f"data.groups: a group has {largest} points, more than {half}{part.field} holds ({room} points); "
                f"divide the group, or make room for {largest * (2 if part.halved else 1)} points there"
            )


def deal(points: Ids, parts: Sequence[Part], groups: Ids, rng: np.random.Generator) -> list[Ids]:
    """Return the ids of each part, exactly as many as it asks for, and behind them those of the groups left over.

    ``points``: (n,) ids; ``groups``: (N,) the group of every point of the data set. Groups come in random order, each
    equally likely anywhere, whatever its size. The excess of the last group of a part, drawn at random, is in no part
    and not among the left ones. Of a part that is ``halved`` groups are kept two by two, the larger of each pair cut to
    the smaller, so that ``halves`` divides it evenly; that costs at most about the largest group. BadInput when the
    points do not suffice.
    """
    queue = shuffled(points, groups, rng)
    found = []
    for part in parts:
        taken = (pairs_of if part.halved else filled)(queue, part.size)
        if taken is None:
            raise BadInput(
                f"data.groups: {len(points)} points in {len(np.unique(groups[points]))} groups do not fill "
                f"{', '.join(f'{size} × {name}' for name, size in counted(parts))} with whole groups, the excess of "
                f"each part's last group left out: too few for {part.field} ({part.size} points); make the pools "
                "smaller or give more points"
            )
        found.append(taken)
    return [*found, joined(list(queue))]


def shuffled(points: Ids, groups: Ids, rng: np.random.Generator) -> Iterator[Ids]:
    """Yield the ids of each group in random order, groups in random order."""
    order = rng.permutation(points)
    names, group = np.unique(groups[order], return_inverse=True)
    rank = rng.permutation(len(names))[group]
    ends = np.cumsum(np.bincount(rank, minlength=len(names)))
    yield from np.split(order[np.argsort(rank, kind="stable")], ends[:-1]) if len(names) else ()


def filled(queue: Iterator[Ids], size: int) -> Ids | None:
    """Return the next groups of ``queue``, the last one cut to make ``size`` points; None if they are fewer."""
    taken, missing = [], size
    while missing > 0:
        group = next(queue, None)
        if group is None:
            return None
        taken.append(group[:missing])
        missing -= len(taken[-1])
    return joined(taken)


def pairs_of(queue: Iterator[Ids], size: int) -> Ids | None:
    """Return the next groups of ``queue`` in pairs of equal size, ``size`` points (even); None if they are fewer."""
    taken: list[Ids] = []
    while True:
        ranked = sorted(taken, key=len, reverse=True)
        pairs = [(one[: len(two)], two) for one, two in zip(ranked[::2], ranked[1::2], strict=False)]
        excess = sum(len(two) for _, two in pairs) - size // 2
        if excess >= 0:
            break
        group = next(queue, None)
        if group is None:
            return None
        taken.append(group)
    while excess > 0:  # at the expense of the smallest pairs
        one, two = pairs.pop()
        left = max(0, len(two) - excess)
        excess -= len(two) - left
        if left:
            pairs.append((one[:left], two[:left]))
    return joined([part for pair in pairs for part in pair])


def halves(groups: Ids, rng: np.random.Generator) -> Bools:
    """Return (n,) bool: one half of the points whose groups (n,) are given, every group on one side.

    Of each size of group half are drawn, so both halves have n/2 points and the same sizes of groups. BadInput unless
    there is an even number of groups of each size (``deal`` into a part that is ``halved``).
    """
    names, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    chosen = np.zeros(len(names), bool)
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        if len(alike) % 2:
            raise BadInput(f"data.groups: {len(alike)} groups of {size} points cannot be halved; give an even number")
        chosen[rng.permutation(alike)[: len(alike) // 2]] = True
    return chosen[group]


def counted(parts: Sequence[Part]) -> list[tuple[str, int]]:
    """Return the fields of ``parts``, each with the points that it asks for in all its parts."""
    return [
        (field, sum(part.size for part in parts if part.field == field))
        for field in dict.fromkeys(part.field for part in parts)
    ]


def joined(parts: Sequence[npt.NDArray[Any]]) -> Ids:
    """Return arrays of ids one behind the other; none for no array."""
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64, copy=False)

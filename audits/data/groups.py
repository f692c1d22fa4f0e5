"""Points that belong together (one patient, video or author), and how they are dealt into parts as whole groups.

Two images of one patient are alike. Where one of them is trained on and the other counts as never seen, the second is a
member in all but name, and rates among "never seen" points say nothing. So each group stays on one side of every
border: parts are filled with whole groups in random order, and the excess of a part's last group is used nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.arrays import Bools, Ids
from audits.data.id_lists import table_of, written_points
from audits.data.ids import Points
from audits.errors import BadInput, how_many
from audits.home import expanded
from audits.writing import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("id", "group")
WANTED = "give a CSV or Parquet file with the columns id and group"


@dataclass(frozen=True)
class Part:
    """A part to be filled with ``size`` points; ``field`` of the plan says so. ``halved``: see ``halves``."""

    field: str
    size: int
    halved: bool = False


def numbered(what: str, values: object, points: int) -> Ids:
    """Return groups as numbers (N,) int64, in the order of their first points, so that their names do not count.

    ``values``: one whole number or text for each of the ``points``; a text is a name as it stands, with its spaces and
    zeros, so ``NA``, ``nan`` and ``None`` are names too. BadInput otherwise, also for an empty or missing one, and for
    a number that stands there as text as well; ``what`` says whose they are.
    """
    try:
        names = plain(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{what}: groups cannot become an array; give one whole number or name a point") from error
    shape = (len(names),) if isinstance(values, list | tuple) else np.shape(np.asarray(values))
    if shape != (points,):
        raise BadInput(f"{what}: groups have shape {shape}; needed: ({points},), one for each point")
    for point, name in enumerate(names):
        if is_missing(name):
            raise BadInput(
                f"{what} has no group for point {point} (it is empty or missing); name one (a group may be a single "
                "point)"
            )
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise BadInput(
                f"{what}: the group of point {point} is {str(name)[:40]!r}, of type {type(name).__name__}; give "
                "one whole number or name a point"
            )
    number: dict[str, int] = {}
    kinds = {name: number.setdefault(str(name), len(number)) for name in names}
    if len(kinds) > len(number):  # 1 and "1", of which tables cannot tell which is which
        both = next(name for name in kinds if isinstance(name, int) and str(name) in kinds)
        raise BadInput(f"{what}: groups hold {both} both as a number and as text; write all as text")
    return np.array([kinds[name] for name in names], np.int64)


def is_missing(name: object) -> bool:
    """Say whether a group is none: an empty text, None, NaN, or what pandas writes for one that is missing."""
    if isinstance(name, float):
        return math.isnan(name)
    return not name if isinstance(name, str | None) else type(name).__name__ in ("NAType", "NaTType")


def plain(values: object) -> list[object]:
    """Return a sequence of groups one by one: an array of mixed ones would make texts, or doubles, of some."""
    each = values if isinstance(values, list | tuple) else np.asarray(values).reshape(-1).tolist()
    return [one.item() if hasattr(one, "item") and np.ndim(one) == 0 else one for one in each]


def read_groups(path: str, points: Points) -> Ids:
    """Return the groups (N,) of a CSV file (with a heading) or a Parquet file with the columns ``id`` and ``group``.

    Each of the ``points`` stands there once, in any order, by its id or its name; groups are whole numbers, or texts as
    they are written. BadInput when the file cannot be read or does not say one group for each point.
    """
    what, table = called(path), table_of_groups(path)
    places = points.ids(written_points(table, "id", what), what)
    if len(places) < points.count:
        absent = np.setdiff1d(np.arange(points.count), places)
        raise BadInput(
            f"{what} has no group for point {absent[0]} ({how_many(len(absent), 'such point')}); give each "
            f"of {points.count} points one line"
        )
    names = table["group"].to_pylist()
    return numbered(what, [names[row] for row in np.argsort(places)], points.count)


def table_of_groups(path: str) -> pa.Table:
    """Return the rows of a file of groups, which has the columns ``id`` and ``group``; raises BadInput for others."""
    what, file = called(path), expanded(path)
    if file.exists() and not file.is_file():
        raise BadInput(f"{what} is not a file; {WANTED}")
    try:
        table = table_of(file, what)
    except BadInput as error:
        raise BadInput(f"{error}; {WANTED}") from None
    if not set(COLUMNS) <= set(table.column_names):
        raise BadInput(f"{what} has the columns {', '.join(table.column_names)[:200]}; needed: id and group")
    return table


def called(path: str) -> str:
    """Return how messages call a file of groups."""
    return f"data.groups {path!r}"


def write_groups(path: str, groups: Ids) -> None:
    """Write ``groups`` (N,) as a CSV file that ``read_groups`` reads; BadInput when it cannot be written."""
    if path.endswith(".parquet"):
        raise BadInput(f"{path} would hold CSV, and files of that name are read as Parquet; give a name ending in .csv")
    lines = [",".join(COLUMNS), *(f"{point},{group}" for point, group in enumerate(groups.tolist()))]
    try:
        write_whole(expanded(path), ("\n".join(lines) + "\n").encode())
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}; give the path of a file") from None


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

"""Copies of points on the other side of a border of the split: exact ones, and near ones.

A design compares points that a model trained on with points that it never saw. A never-seen point whose copy was
trained on is a member in all but name: it is counted among the non-members and looks like a member.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.arrays import Floats, Ids
from audits.data.dataset import Dataset
from audits.errors import BadInput

NEAR = 0.2
"""Nearest neighbours closer than this share of the median one are near copies. Where points fill k dimensions evenly,
a share of about NEAR^k · ln 2 is that close by chance: 1 in 22 500 for k = 6."""
SAME = 0.04
"""Nearer than this share of the usual distance between two points is near as well, whatever the nearest neighbours are:
where most points have a copy, the median nearest neighbour is a copy itself."""
LEAST_VALUES = 32
"""Values of a point below which near copies are not sought: so few dimensions bring points together by chance."""
MOST_OPERATIONS = 5e11
"""Of a comparison that each run makes, a warm one too: some ten seconds of one processor."""
BLOCK = 1024
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Borders:
    """What a design keeps apart. ``side`` (N,): points of equal sides are never on two sides of a border, −1: not used.

    ``asked``: ids (A,) of the points that models are asked about.
    """

    side: Ids
    asked: Ids


@dataclass(frozen=True)
class Copies:
    """How many points that are asked about have a copy on another side, and one such pair of point ids.

    ``near``: further points, with a near copy and no exact one, None where too many would have to be compared;
    ``example``: an exact pair if there is one.
    """

    asked: int
    exact: int
    near: int | None
    example: tuple[int, int] | None


def borders(points: int, parts: Sequence[Ids], asked: Ids, groups: Ids | None, mates: Sequence[Ids] = ()) -> Borders:
    """Return the borders of a data set of ``points`` between ``parts`` (ids, each a side) and the ``asked`` points.

    These are a side each, or each of their groups is: models train on some of them and not on others. A point of
    several parts is on the side of the last one. ``mates``: points that are on the side of their group, if any, too.
    """
    side = np.full(points, -1, np.int64)
    for place, part in enumerate(parts):
        side[part] = place
    own = np.arange(points, dtype=np.int64) if groups is None else groups
    for grouped in (asked,) if groups is None else (*mates, asked):
        side[grouped] = len(parts) + own[grouped]
    return Borders(side, asked)


def copies(data: Dataset, found: Borders) -> Copies | None:
    """Return the copies of the asked points across ``found``; None for images that stay in their files.

    Near copies are sought among images and vectors of ``LEAST_VALUES`` or more, not among texts. Takes one pass over
    the U used points for exact copies and 2·A·U·D floating-point operations for near ones, points of D values;
    memory: A·D + ``BLOCK``·(``BLOCK`` + D) float32 and a digest a point. Above ``MOST_OPERATIONS`` near copies are not
    sought.
    """
    if not isinstance(data.inputs, np.ndarray):
        return None
    used = np.flatnonzero(found.side >= 0).astype(np.int64)
    exact = exact_copies(data.inputs, used, found)
    if 2 * len(found.asked) * len(used) * data.inputs[0].size > MOST_OPERATIONS and comparable(data.inputs, used):
        return Copies(len(found.asked), len(exact), None, next(iter(exact.items()), None))
    near = near_copies(data.inputs, used, found)
    example = next(iter((exact or near).items()), None)
    return Copies(len(found.asked), len(exact), len(near.keys() - exact.keys()), example)


def copy_groups(data: Dataset) -> Ids:
    """Return groups (N,) int64 that hold each point together with its copies, for ``data.groups``.

    A point goes with its exact and near copies, and these with theirs: groups are joined by their nearest points as
    long as these are near copies. Takes 2·N²·D floating-point operations for N points of D values, and as many again
    each time that groups were joined, log₂ of the largest group + 1 times at the most; memory as in ``copies`` with
    A = N. Raises BadInput for images that stay in their files.
    """
    if not isinstance(data.inputs, np.ndarray):
        raise BadInput(f"the images of {data.name} stay in their files and are not compared; give a smaller size")
    everyone = np.arange(len(data), dtype=np.int64)
    alone = Borders(everyone, everyone)
    groups = joined_by(exact_copies(data.inputs, everyone, alone), everyone)
    if not comparable(data.inputs, everyone):
        return groups
    nearest, distance = nearest_across(data.inputs, everyone, alone)
    limit = near_limit(data.inputs, everyone, distance)
    while (close := distance < limit).any():
        links = dict(zip(everyone[close].tolist(), nearest[close].tolist(), strict=True))
        groups = joined_by(links, groups)
        nearest, distance = nearest_across(data.inputs, everyone, Borders(groups, everyone))
    return groups


def joined_by(links: dict[int, int], groups: Ids) -> Ids:
    """Return ``groups`` (N,) with those joined that have linked points."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, two = groups[np.array(list(links.items()), np.int64).reshape(-1, 2)].T
    table = coo_array((np.ones(len(one)), (one, two)), shape=(len(groups), len(groups)))
    found: Ids = connected_components(table, directed=False)[1].astype(np.int64)
    return found[groups]


def exact_copies(inputs: npt.NDArray[Any], used: Ids, found: Borders) -> dict[int, int]:
    """Return the asked points that equal a used point of another side bit for bit, and the first such point."""
    alike: dict[bytes, list[int]] = {}
    for point in used.tolist():
        row = np.ascontiguousarray(inputs[point])
        alike.setdefault(hashlib.blake2b(row.data, digest_size=16).digest(), []).append(point)
    several = {point: same for same in alike.values() if len(same) > 1 for point in same}
    pairs = {}
    for point in found.asked.tolist():
        others = [other for other in several.get(point, ()) if found.side[other] != found.side[point]]
        if others:
            pairs[point] = others[0]
    return pairs


def near_copies(inputs: npt.NDArray[Any], used: Ids, found: Borders) -> dict[int, int]:
    """Return the asked points that have a near copy among the used points of other sides, and the nearest one."""
    if not comparable(inputs, used):
        return {}
    nearest, distance = nearest_across(inputs, used, found)
    close = distance < near_limit(inputs, used, distance)
    return {int(one): int(two) for one, two in zip(found.asked[close], nearest[close], strict=True)}


def near_limit(inputs: npt.NDArray[Any], used: Ids, distance: Floats) -> float:
    """Return the distance below which copies are near, by those of points to their nearest neighbours."""
    some = distance[np.isfinite(distance)]
    return max(NEAR * float(np.median(some)), SAME * usual_distance(inputs, used)) if len(some) else 0.0


def comparable(inputs: npt.NDArray[Any], used: Ids) -> bool:
    """Return whether distances between points mean something: neither few values nor the whole numbers of a text."""
    if not len(used) or inputs[0].size < LEAST_VALUES:
        return False
    some = inputs[used[:BLOCK]]
    return inputs.dtype == np.uint8 or inputs.ndim == 4 or bool((some != np.rint(some)).any())


def nearest_across(inputs: npt.NDArray[Any], used: Ids, found: Borders) -> tuple[Ids, Floats]:
    """Return for each asked point the nearest used point of another side, and its distance (inf: there is none).

    Images are compared after their mean is taken away and their length made 1 (so not by brightness and contrast),
    vectors in units of each column's standard deviation.
    """
    normalise = image_rows if inputs.ndim == 4 else Columns(inputs, used)
    asked = np.concatenate([normalise(inputs[rows]) for rows in cut(found.asked)] or [np.empty((0, 1), np.float32)])
    length = np.square(asked).sum(1)
    nearest, least = np.full(len(asked), -1, np.int64), np.full(len(asked), np.inf)
    for rows in cut(used):
        others = normalise(inputs[rows])
        lengths = np.square(others).sum(1)
        for start in range(0, len(asked), BLOCK):
            part = slice(start, start + BLOCK)
            squared = length[part, None] + lengths[None] - 2 * asked[part] @ others.T
            squared[found.side[found.asked[part], None] == found.side[rows][None]] = np.inf
            best = squared.argmin(1)
            distance = squared[np.arange(len(best)), best]
            closer = distance < least[part]
            least[part] = np.where(closer, distance, least[part])
            nearest[part] = np.where(closer, rows[best], nearest[part])
    return nearest, np.sqrt(np.maximum(least, 0))


def usual_distance(inputs: npt.NDArray[Any], used: Ids) -> float:
    """Return the median distance between used points, as ``nearest_across`` measures it, over ``BLOCK`` of them."""
    normalise = image_rows if inputs.ndim == 4 else Columns(inputs, used)
    rows = normalise(inputs[used[:: -(-len(used) // BLOCK)]])
    length = np.square(rows).sum(1)
    squared = length[:, None] + length[None] - 2 * rows @ rows.T
    return float(np.sqrt(max(0.0, np.median(squared[np.triu_indices(len(rows), 1)])))) if len(rows) > 1 else 0.0


def image_rows(images: npt.NDArray[Any]) -> Rows:
    """Return images as rows of mean 0 and length 1; one of a single colour stays 0."""
    rows: Rows = images.reshape(len(images), -1).astype(np.float32)
    rows -= rows.mean(1, keepdims=True)
    rows /= np.maximum(np.sqrt(np.square(rows).sum(1, keepdims=True)), np.finfo(np.float32).tiny)
    return rows


class Columns:
    """Puts vectors into units of the standard deviation of each column over ``used`` points (constant ones: as is)."""

    def __init__(self, inputs: npt.NDArray[Any], used: Ids) -> None:
        total = sum(self.flat(inputs[rows]).astype(np.float64).sum(0) for rows in cut(used))
        self.mean = total / len(used)
        squares = sum(np.square(self.flat(inputs[rows]) - self.mean).sum(0) for rows in cut(used))
        deviation = np.sqrt(squares / len(used))
        self.deviation = np.where(deviation > 0, deviation, 1.0)

    def __call__(self, inputs: npt.NDArray[Any]) -> Rows:
        rows: Rows = ((self.flat(inputs) - self.mean) / self.deviation).astype(np.float32)
        return rows

    @staticmethod
    def flat(inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return one row a point."""
        return inputs.reshape(len(inputs), -1)


def cut(ids: Ids) -> list[Ids]:
    """Return ``ids`` in blocks."""
    return [ids[start : start + BLOCK] for start in range(0, len(ids), BLOCK)]

"""The best of several settings: what the largest AUC of a sweep reaches where no setting can see anything.

Whoever tries many settings and quotes the best one quotes a maximum, which lies above one half by luck alone.
Membership is permuted as in ``null.permutation_p``, for all settings at once, and the largest AUC of each relabeling is
kept: where settings judge the same points of the same targets they share the relabelings, so that what their scores
have in common stays. Settings with other points, such as those of another seed, have relabelings of their own; where
these points overlap with others, the dependence between the two is lost, and chance then reaches farther, not less far,
if it was positive.

The p-value holds where labels are exchangeable within targets (units, groups) in every setting. It says that *some*
setting sees something, not that the best one is better than the next, and it mends no AUC: that of a setting picked on
these targets is still flattered by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.seeds import derive_seed
from audits.statistics.judged import rows_by
from audits.statistics.null import PARTED
from audits.statistics.summary import Cell

BEST_OF = "best of"
SAME = 1e-9
"""Sums of equal ranks in another order must count as equal."""


@dataclass(frozen=True)
class Best:
    """The best of the settings of one unlearning method × attack: the largest mean within-target AUC.

    ``median`` and ``high``: middle and upper end (one-sided) of the largest AUC under chance; ``p``: one-sided.
    """

    unlearner: str
    attack: str
    setting: str
    settings: int
    auc: float
    median: float
    high: float
    p: float


@dataclass(frozen=True)
class Layout:
    """What settings judge: membership, targets and points of their rows, which relabelings are drawn for.

    ``unit`` (n,): what moves together; ``block`` (n,): points that were dealt together, or the points themselves.
    """

    member: NDArray[np.bool_]
    target: NDArray[np.int64]
    point: NDArray[np.int64]
    unit: NDArray[np.int64]
    block: NDArray[np.int64]

    @property
    def key(self) -> bytes:
        """What is equal for equal layouts."""
        return b"|".join(np.ascontiguousarray(each).tobytes() for each in vars(self).values())


def best_settings(
    found: Iterable[Cell],
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
    unit: str = "target",
) -> list[Best]:
    """Return the best setting of each unlearning method × attack that two settings or more were tried with.

    Left out are those whose scores are the same in all settings. p = (1 + #{relabelings whose largest AUC is at least
    the one found}) / (1 + draws). ``groups`` and ``unit``: as in ``summary.summarise``. Peak memory: 8·draws·(n + k)
    bytes for k cells and n points of a unit.
    """
    families: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        families.setdefault((cell.unlearner, cell.attack), []).append(cell)
    chosen = [family for family in families.values() if len({cell.scores.tobytes() for cell in family}) > 1]
    cells = [cell for family in chosen for cell in family]
    areas, chance = areas_and_chance(cells, [layout_of(cell, groups, unit) for cell in cells], draws, seed)
    best, stop = [], 0
    for family in chosen:
        start, stop = stop, stop + len(family)
        best.append(best_of(family, areas[start:stop], chance[:, start:stop].max(axis=1), level))
    return best


def best_of(family: Sequence[Cell], areas: Floats, largest: Floats, level: float) -> Best:
    """Return the best of settings with ``areas`` (k,) beside the ``largest`` of theirs under chance (draws,)."""
    place = int(np.argmax(areas >= areas.max() - SAME))
    middle, high = (float(each) for each in np.quantile(largest, [0.5, level]))
    reached = int((largest >= areas[place] - SAME).sum())
    return Best(
        unlearner=family[place].unlearner,
        attack=family[place].attack,
        setting=family[place].setting,
        settings=len(family),
        auc=float(areas[place]),
        median=middle,
        high=high,
        p=(1 + reached) / (1 + largest.size),
    )


def layout_of(cell: Cell, groups: NDArray[np.int64] | None, unit: str) -> Layout:
    """Return what a cell judges."""
    point = cell.columns["point_id"]
    return Layout(cell.member, cell.target, point, cell.columns[unit], point if groups is None else groups[point])


def areas_and_chance(cells: Sequence[Cell], layouts: Sequence[Layout], draws: int, seed: int) -> tuple[Floats, Floats]:
    """Return the mean within-target AUC of each cell (k,), and under relabelings (draws, k)."""
    shared: dict[bytes, list[int]] = {}
    for place, layout in enumerate(layouts):
        shared.setdefault(layout.key, []).append(place)
    areas, chance = np.full(len(cells), 0.5), np.full((draws, len(cells)), 0.5)
    for index, places in enumerate(shared.values()):
        layout = layouts[places[0]]
        scores = np.stack([cells[place].scores for place in places], axis=1)
        targets = np.unique(layout.target).size
        for rows, labels in relabelled(layout, draws, derive_seed(seed, BEST_OF, index)):
            ranks = centred_ranks(scores[rows])
            areas[places] += above_half(layout.member[rows][None].astype(np.float64), ranks)[0] / targets
            chance[:, places] += above_half(labels, ranks) / targets
    return areas, chance


def relabelled(layout: Layout, draws: int, seed: int) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield the rows of each target, and relabelings (draws, rows) of them, as 0.0 / 1.0.

    The targets of a unit permute their points alike, blocks of points move as a whole. Raises BadInput for targets of a
    unit that judge different points, and for blocks of members and non-members.
    """
    for place, inside in enumerate(rows_by(layout.unit)):
        targets = [inside[rows] for rows in rows_by(layout.target[inside])]
        first = targets[0]
        if any(not np.array_equal(layout.point[rows], layout.point[first]) for rows in targets):
            raise BadInput("targets that move together are asked about different points")
        _, start, block = np.unique(layout.block[first], return_index=True, return_inverse=True)
        rng = np.random.default_rng(derive_seed(seed, BEST_OF, place))
        moved = rng.permuted(np.tile(start, (draws, 1)), axis=1)[:, block]
        for rows in targets:
            own = layout.member[rows]
            if (own[start][block] != own).any():
                raise BadInput(PARTED)
            yield rows, own[moved].astype(np.float64)


def centred_ranks(scores: Floats) -> Floats:
    """Return the ranks of scores (n, k) within their columns, less their mean."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(scores, axis=0) - (len(scores) + 1) / 2.0)


def above_half(labels: Floats, ranks: Floats) -> Floats:
    """Return AUC − ½ of labels (draws, n), 0.0 / 1.0, by centred ranks (n, k): (draws, k)."""
    members = labels.sum(axis=1, keepdims=True)
    return np.asarray(labels @ ranks / (members * (labels.shape[1] - members)))

"""The three disjoint pools of a design, of single points or of whole groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.apollo.design.exposure import chosen
from audits.apollo.design.split import Split
from audits.arrays import Ids
from audits.data.groups import Part, check_groups, deal, joined
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator


@dataclass(frozen=True)
class Pools:
    """The three disjoint pools, in random order: (a), the two halves of (b), (c)."""

    target: Ids
    halves: tuple[Ids, Ids]
    test: Ids


def cut_pools(points: int, split: Split, seed: int, groups: Ids | None = None) -> Pools:
    """Return the pools; points that are forgotten by name are in none of them.

    ``groups``: (points,) the group of each point, which is then in one part alone (``grouped_pools``).
    """
    if groups is not None:
        return grouped_pools(points, split, seed, groups)
    order = numpy_generator(derive_seed(seed, Purpose.POOLS)).permutation(points).astype(np.int64)
    if split.forget_ids:
        order = order[~np.isin(order, split.forget_ids)]
    target, shadow, test = np.split(
        order[: split.points - len(split.forget_ids)], [split.target_pool, split.target_pool + split.shadow_pool]
    )
    return Pools(target, (shadow[: len(shadow) // 2], shadow[len(shadow) // 2 :]), test)


def parts_of_training(split: Split) -> list[Part]:
    """Return the parts of a target's training set that share no group: to forget, retained candidates, the others."""
    forget, retained = split.forget_count or 0, split.candidates_retained
    return [
        Part("split.forget", forget),
        Part("split.candidates.retained", retained),
        Part("split.train_size", split.train_size - forget - retained),
    ]


def grouped_pools(points: int, split: Split, seed: int, groups: Ids) -> Pools:
    """Return pools of whole groups (``audits.data.groups.deal``), part behind part.

    (a): the training sets of as many targets as it holds, each with its points to forget first, then its retained
    candidates; (c): the never-seen candidates of each target, then the points that test. No group is in two of these
    parts; what is cut off to make sizes exact is used nowhere. Raises ``BadInput`` for designs that name points or rank
    them, and when a group is larger than a part.
    """
    check_grouping(split)
    targets = min(split.targets, split.target_pool // split.train_size)
    half = split.shadow_pool // 2
    parts = [
        *(parts_of_training(split) * targets),
        Part("split.target_pool", split.target_pool - targets * split.train_size),
        Part("split.shadow_pool", half),
        Part("split.shadow_pool", split.shadow_pool - half),
        *([Part("split.candidates.unseen", split.candidates_unseen)] * split.targets),
        Part("split.test_pool", split.test_pool - split.targets * split.candidates_unseen),
    ]
    ids = np.arange(points, dtype=np.int64)
    check_groups(ids, groups, [part for part in parts if part.field != "split.target_pool"])  # that is what is left
    found = deal(ids, parts, groups, numpy_generator(derive_seed(seed, Purpose.POOLS)))
    first = 3 * targets + 1
    return Pools(joined(found[:first]), (found[first], found[first + 1]), joined(found[first + 2 : -1]))


def check_grouping(split: Split) -> None:
    """Refuse designs that choose points one by one, whatever their groups."""
    if not isinstance(split.forget, float | int):
        raise BadInput(
            "data.groups: split.forget names classes or ids, which cuts through groups; give a fraction to forget "
            "(whole groups are forgotten), or leave data.groups out"
        )
    if split.audited != "random":
        raise BadInput(
            f"data.groups: split.points is {chosen(split)}, which chooses points one by one; set it to random, or "
            "leave data.groups out"
        )

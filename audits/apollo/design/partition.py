"""The partition of a data set: pools, targets, shadow halves, candidates and forget sets, all as index sets.

Pools are disjoint: (a) targets train on it, (b) the attacker's own data in two disjoint halves, (c) points that no
target ever sees. A *shadow set* serves one or more targets: its online shadows train on a half of (b) plus half of
the candidates of those targets, its offline shadows on a half of (b) only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.apollo.design.exposure import ExposedSplit, chosen, deal_exposed, draw_watched, points_ranked
from audits.apollo.design.forget_sets import Rule, rule_of
from audits.apollo.design.group_rule import GroupRule
from audits.apollo.design.memorisation import Deal, available_points, deal_memorised, draw_ranking
from audits.apollo.design.pools import Pools, check_grouping, cut_pools
from audits.apollo.design.population import FORGET, GROUPS, RETAINED, UNSEEN, Candidates, Member, Role
from audits.apollo.design.shadow_sets import draw_offline_shadows, draw_shadows, shared_half_warnings
from audits.apollo.design.split import ForgetClasses, ForgetIds, Split, check_split, overlap, overlap_warnings
from audits.arrays import Ids, Labels
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator

__all__ = [
    "FORGET",
    "GROUPS",
    "RETAINED",
    "UNSEEN",
    "Candidates",
    "ExposedSplit",
    "ForgetClasses",
    "ForgetIds",
    "Ids",
    "Member",
    "Partition",
    "Role",
    "Split",
    "check_split",
    "make_partition",
    "overlap",
    "overlap_warnings",
    "ranked_pool",
    "ranking_members",
    "shared_half_warnings",
]


@dataclass(frozen=True)
class Partition:
    """The whole design. ``members`` lists targets, then per shadow set the shadows and the offline shadows."""

    split: Split
    members: tuple[Member, ...]
    candidates: tuple[Candidates, ...]
    test: Ids
    warnings: tuple[str, ...]

    def select(self, role: Role, shadow_set: int, group: int | None = None) -> tuple[Member, ...]:
        """Return the members of ``role`` in a shadow set, in order; ``group`` 1 or 2 restricts to one half."""
        return tuple(
            member
            for member in self.members
            if member.role == role and member.shadow_set == shadow_set and (group is None or member.group == group)
        )

    def membership(self, members: tuple[Member, ...], ids: Ids) -> NDArray[np.bool_]:
        """Return the membership matrix (models, points): was the point in the model's training set?"""
        return np.stack([np.isin(ids, member.train) for member in members])


def make_partition(
    points: int,
    split: Split,
    seed: int,
    *,
    labels: Labels | None = None,
    ranking: NDArray[np.float64] | None = None,
    groups: Ids | None = None,
) -> Partition:
    """Return the design for a data set of ``points`` points. Equal arguments give equal index sets.

    ``labels``: (points,) class indices, needed unless a fraction is forgotten. ``ranking``: (points,) memorisation or
    exposure of each point, NaN where it was not ranked, needed when memorised or exposed points are audited: candidates
    of all groups are then the top of one ranked pool, dealt at random, since memorised points told from typical ones
    say nothing about the model. ``groups``: (points,) the group of each point, which is then on one side of every
    border (``pools.grouped_pools``, ``group_rule``). Raises ``BadInput`` when the pools are too small for the design or
    one of these is missing.
    """
    check_split(points, split)
    if groups is not None:
        check_grouping(split)
    rule = rule_of(points, split, labels) if groups is None else GroupRule(split, groups)
    pools = cut_pools(points, split, seed, groups)
    deal = dealt(pools, split, ranking, seed)
    targets = draw_targets(deal.rest if deal else pools.target, split, rule, deal, seed)
    unseen, test = (deal.unseen, left_to_test(pools, split)) if deal else draw_unseen(pools.test, targets, split, rule)
    members: list[Member] = list(targets)
    candidates: list[Candidates] = []
    warnings = list(overlap_warnings(split))
    for shadow_set in range(split.shadow_sets):
        own = [target for target in targets if target.shadow_set == shadow_set]
        retained = [draw_retained(target, split, rule, deal, seed) for target in own]
        asked = draw_candidates(own, [unseen[target.index] for target in own], retained, split, seed)
        candidates.append(asked)
        shadows = draw_shadows(asked, pools.halves, split, rule, own, seed)
        first, second = (tuple(shadow for shadow in shadows if shadow.group == group) for group in (1, 2))
        warnings += shared_half_warnings((first, second), asked.ids)
        members += [*shadows, *draw_offline_shadows(pools.halves, split, rule, own, seed)]
    return Partition(split, tuple(members), tuple(candidates), test, tuple(dict.fromkeys(warnings)))


def ranked_pool(points: int, split: Split, seed: int) -> Ids:
    """Return the points whose memorisation or exposure is measured, in the order of its scores. Raises ``BadInput``."""
    check_split(points, split)
    size, pools = points_ranked(split), cut_pools(points, split, seed)
    return available_points(pools.target, pools.test, split)[:size]


def ranking_members(points: int, split: Split, seed: int) -> tuple[Member, ...]:
    """Return the models (role "ranking") by which ``ranked_pool`` is ranked, trained by the design's recipe."""
    draw = draw_watched if isinstance(split, ExposedSplit) else draw_ranking
    return draw(ranked_pool(points, split, seed), split, seed)


def dealt(pools: Pools, split: Split, ranking: NDArray[np.float64] | None, seed: int) -> Deal | None:
    """Return the ranked candidates, or None where candidates are drawn at random."""
    if split.audited == "random":
        return None
    points_ranked(split)
    if ranking is None:
        raise BadInput(
            f"split.points is {chosen(split)}, but no ranking of the points was given; train a ranking population"
        )
    deal = deal_exposed if isinstance(split, ExposedSplit) else deal_memorised
    return deal(available_points(pools.target, pools.test, split), ranking, split, seed)


def left_to_test(pools: Pools, split: Split) -> Ids:
    """Return the points of (c) that are not set aside for never-seen candidates."""
    return pools.test[split.targets * split.candidates_unseen :]


def draw_targets(pool: Ids, split: Split, rule: Rule, deal: Deal | None, seed: int) -> list[Member]:
    """Return the targets; their training sets are disjoint as long as the pool lasts, then random draws."""
    targets = []
    for index in range(split.targets):
        rng = numpy_generator(derive_seed(seed, Purpose.TARGET, index))
        fixed = deal.fixed[index] if deal else rule.fixed(rng)
        size = split.train_size - len(fixed.forget) - len(fixed.keep)
        if (index + 1) * size <= len(pool):
            drawn = pool[index * size : (index + 1) * size]
        else:
            drawn = rule.draw(pool, size, rng)
        forget = rule.of_target(drawn, fixed, rng)
        train = rng.permutation(np.concatenate([fixed.forget, fixed.keep, drawn])) if size < split.train_size else drawn
        shadow_set = index // split.targets_per_shadow_set
        targets.append(Member(f"target-{index:03d}", "target", shadow_set, 0, index, train, forget))
    return targets


def draw_unseen(pool: Ids, targets: Sequence[Member], split: Split, rule: Rule) -> tuple[tuple[Ids, ...], Ids]:
    """Return each target's never-seen candidates, all different, and the points of (c) that are left."""
    found: list[Ids] = []
    left = pool
    for target in targets:
        never = rule.comparable(left, target.forget[: split.candidates_forget], split.candidates_unseen)
        left = left[~np.isin(left, never)]
        found.append(never)
        if len(never) < split.candidates_unseen or not len(left):
            there, needed = len(np.concatenate(found)), split.targets * split.candidates_unseen
            raise BadInput(
                f"split.test_pool: never-seen candidates need the labels of the forgotten ones, which {there} points "
                f"of the {len(pool)} have, but {needed} are asked about; raise split.test_pool to about "
                f"{math.ceil(1.1 * len(pool) * needed / max(there, 1))} or lower split.candidates.unseen"
            )
    return tuple(found), left


def draw_retained(target: Member, split: Split, rule: Rule, deal: Deal | None, seed: int) -> Ids:
    """Return the retained candidates of a target."""
    if deal:
        return deal.fixed[target.index].keep
    pool = rule.retained(target, numpy_generator(derive_seed(seed, Purpose.RETAINED, target.index)))
    kept = rule.comparable(pool, target.forget[: split.candidates_forget], split.candidates_retained)
    if len(kept) < split.candidates_retained:
        raise BadInput(
            f"split.candidates.retained is {split.candidates_retained}, but a target retains only {len(kept)} points "
            "of the classes that it forgets; lower it, or forget a smaller part"
        )
    return kept


def draw_candidates(
    targets: Sequence[Member], unseen: Sequence[Ids], retained: Sequence[Ids], split: Split, seed: int
) -> Candidates:
    """Return the candidates of one shadow set: the groups of each of its targets, shuffled."""
    ids, owner, group = [], [], []
    for target, never, kept in zip(targets, unseen, retained, strict=True):
        parts = {FORGET: target.forget[: split.candidates_forget], UNSEEN: never, RETAINED: kept}
        ids += list(parts.values())
        owner += [np.full(sum(map(len, parts.values())), target.index, np.int64)]
        group += [np.full(len(part), code, np.int8) for code, part in parts.items()]
    order = numpy_generator(derive_seed(seed, Purpose.CANDIDATES, targets[0].shadow_set)).permutation(
        sum(map(len, ids))
    )
    return Candidates(np.concatenate(ids)[order], np.concatenate(owner)[order], np.concatenate(group)[order])

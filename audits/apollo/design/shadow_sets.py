"""The shadows of one shadow set: who trains on which candidates, in a balanced design, and on what else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audits.apollo.design.forget_sets import Inside, Rule
from audits.apollo.design.population import Candidates, Member
from audits.apollo.design.split import Split
from audits.arrays import Ids
from audits.seeds import Purpose, derive_seed, numpy_generator


def draw_shadows(
    asked: Candidates, halves: tuple[Ids, Ids], split: Split, rule: Rule, targets: Sequence[Member], seed: int
) -> list[Member]:
    """Return the online shadows: half of the candidates each, in complementary pairs, so the design is balanced.

    Within each half of the pool every candidate is in exactly half of the shadows and, where there are retained
    candidates, forgotten by half of these. The rest of a training set comes from the half; the forget set is the
    shadow's candidates, or the part of them that it forgets, filled up to the forget count of the ``targets``.
    """
    shadows = []
    unique, shadow_set = np.unique(asked.ids), targets[0].shadow_set
    units = rule.dealt(unique)
    for group, half in enumerate(halves, start=1):
        for index in range(split.shadows // 2):
            draw = roles_of_pair if split.candidates_retained else halves_of_pair
            inside = rule.points_inside(unique, draw(units, seed, shadow_set, group, index // 2)[index % 2])
            rng = numpy_generator(derive_seed(seed, Purpose.SHADOW, shadow_set, group, index))
            train, forget = rule.of_shadow(half, inside, targets, rng)
            name = f"set-{shadow_set:03d}-shadow-{group}-{index:03d}"
            shadows.append(Member(name, "shadow", shadow_set, group, index, train, forget))
    return shadows


def pair_generator(seed: int, shadow_set: int, group: int, pair: int) -> np.random.Generator:
    """Return the generator that divides the candidates among the two shadows of a pair."""
    return numpy_generator(derive_seed(seed, Purpose.PAIR, shadow_set, group, pair))


def halves_of_pair(unique: Ids, seed: int, shadow_set: int, group: int, pair: int) -> tuple[Inside, Inside]:
    """Return what the two shadows of a pair train on: complementary halves of the candidates, all to be forgotten."""
    order = pair_generator(seed, shadow_set, group, pair).permutation(unique)
    first, second = (np.sort(part) for part in np.split(order, [len(order) // 2]))
    return Inside(first, first), Inside(second, second)


def roles_of_pair(unique: Ids, seed: int, shadow_set: int, group: int, pair: int) -> tuple[Inside, Inside]:
    """Return complementary halves of the candidates, one half of each to be forgotten and the other kept.

    Two pairs belong together: what the first makes forget, the second keeps, and the reverse. The second divides
    forgotten and kept points anew among its two shadows. So in two pairs every candidate is forgotten once, kept once
    and outside twice.
    """
    order = pair_generator(seed, shadow_set, group, pair - pair % 2).permutation(unique)
    first, second = np.split(order, [len(order) // 2])
    (first_forgets, first_keeps), (second_forgets, second_keeps) = (
        np.split(half, [-(-len(half) // 2)]) for half in (first, second)
    )
    if pair % 2 == 0:
        return together(first_forgets, first_keeps), together(second_forgets, second_keeps)
    rng = pair_generator(seed, shadow_set, group, pair)
    keeps = rng.permutation(np.concatenate([first_forgets, second_forgets]))
    forgets = rng.permutation(np.concatenate([first_keeps, second_keeps]))
    return together(forgets[::2], keeps[1::2]), together(forgets[1::2], keeps[::2])


def together(forgets: Ids, keeps: Ids) -> Inside:
    """Return the candidates that a shadow trains on and the part that it forgets, both sorted."""
    return Inside(np.sort(np.concatenate([forgets, keeps])), np.sort(forgets))


def draw_offline_shadows(
    halves: tuple[Ids, Ids], split: Split, rule: Rule, targets: Sequence[Member], seed: int
) -> list[Member]:
    """Return the offline shadows: ``train_size`` points of one half of (b), some of which are forgotten."""
    shadows = []
    shadow_set = targets[0].shadow_set
    for group, half in enumerate(halves, start=1):
        for index in range(split.offline_shadows // 2):
            rng = numpy_generator(derive_seed(seed, Purpose.OFFLINE, shadow_set, group, index))
            train, forget = rule.of_offline(half, targets, rng)
            name = f"set-{shadow_set:03d}-offline-{group}-{index:03d}"
            shadows.append(Member(name, "offline", shadow_set, group, index, train, forget))
    return shadows


def shared_half_warnings(groups: tuple[tuple[Member, ...], tuple[Member, ...]], asked: Ids) -> tuple[str, ...]:
    """Return a warning when shadows that judge share training points (candidates apart) with those that search."""
    drawn = [np.setdiff1d(np.concatenate([member.train for member in group]), asked) for group in groups]
    shared = len(np.intersect1d(drawn[0], drawn[1]))
    if not shared:
        return ()
    return (
        f"the two groups of shadows share {shared} training points: pseudo-targets are not independent of the search "
        "and promised false-positive rates will not hold; use disjoint halves of the shadow pool",
    )

"""The design around one given model: who trains on what when the target, its members and its forget set are there.

Three things must hold for a never-seen point of the target and of a shadow to look alike, so that what shadows say of
points that they never saw is the null of the target (exchangeability):

- **Points.** Candidates are drawn at random, the forgotten ones from the forget set, the others from the points that
  the target is known not to have seen. A shadow is dealt its half of them whatever their group, so that nothing but the
  target itself tells a forgotten candidate from a never-seen one. Where the forget set is no random part of the data
  its points are told apart by what they are; the control ``retrain``, a model that is judged at the same points by the
  same shadows, then leaves chance.
- **Models.** A shadow that never saw x is, at x, a model of a random training set without x, unlearned by the method
  of the plan. So is the target at a never-seen x, if it was trained and unlearned like that: on as many points of the
  same distribution, of which it forgot the same share (``given_split``). Nobody can vouch for that; the rate at which
  the target's known never-seen points are called forgotten shows it, point by point of the one model.
- **Data.** Shadows share nothing with the target but candidates. The attacker's data are never-seen points that are
  neither candidates nor test points, in two disjoint halves, as in every design: the shadows that search share with
  those that are asked no more than with the target. Retained members stay out of it, for they are in the target and in
  no shadow.

The partition holds one target, at the place of the models whose answers are judged: the given model for each method of
the plan, and for the controls ``identity`` and ``retrain`` a model of the plan's own, trained on the target's members
(without its forget set). They are asked the same questions, and judged by shadows of the same training sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from audits.apollo.design.forget_sets import FractionRule
from audits.apollo.design.partition import (
    Partition,
    check_split,
    draw_candidates,
    draw_offline_shadows,
    draw_retained,
    draw_shadows,
)
from audits.apollo.design.population import Member
from audits.apollo.design.split import Split, overlap_warnings
from audits.arrays import Ids
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator

FEW = 10
"""Forgotten candidates below which an AUC says little."""


def given_split(split: Split, points: Mapping[str, Ids]) -> Split:
    """Return the sizes of the design around a given model: its own in the place of the targets' of ``split``.

    ``points``: ids by name, ``members`` and ``forget``. Shadows forget the share of their points that the target forgot
    of its own. A smaller forget set than candidates are asked for is asked about as a whole.
    """
    members, forget = len(points["members"]), len(points["forget"])
    return replace(
        split,
        targets=1,
        targets_per_shadow_set=1,
        target_pool=max(members, split.train_size),
        forget=forget / members,
        candidates_forget=min(split.candidates_forget, forget),
    )


def given_partition(count: int, split: Split, seed: int, points: Mapping[str, Ids]) -> Partition:
    """Return the design around a given model in a data set of ``count`` points. Equal arguments give equal index sets.

    ``split``: of ``given_split``; ``points``: ids by name, ``members``, ``forget`` (a part of them) and
    ``non_members``. Raises ``BadInput``, with numbers, where the points do not suffice.
    """
    check_given(split, points)
    check_split(count, split)
    others = numpy_generator(derive_seed(seed, Purpose.POOLS)).permutation(points["non_members"])
    test, shadow = others[: split.test_pool], others[split.test_pool :][: split.shadow_pool]
    halves = shadow[: len(shadow) // 2], shadow[len(shadow) // 2 :]
    rng = numpy_generator(derive_seed(seed, Purpose.TARGET, 0))
    forget = rng.permutation(points["forget"])
    target = Member("target-000", "target", 0, 0, 0, rng.permutation(points["members"]), forget)
    rule = FractionRule(split)
    unseen, test = test[: split.candidates_unseen], test[split.candidates_unseen :]
    asked = draw_candidates([target], [unseen], [draw_retained(target, split, rule, None, seed)], split, seed)
    shadows = draw_shadows(asked, halves, split, rule, [target], seed)
    offline = draw_offline_shadows(halves, split, rule, [target], seed)
    return Partition(split, (target, *shadows, *offline), (asked,), test, given_warnings(split, points))


def check_given(split: Split, points: Mapping[str, Ids]) -> None:
    """Refuse sizes that the given points cannot fill, with the numbers that would do."""
    forget, members, others = (len(points[name]) for name in ("forget", "members", "non_members"))
    needed, count = split.shadow_pool + split.test_pool, split.forget_count or 0
    asked, most = split.candidates_per_target, 4 * count - 1 if split.candidates_retained else 2 * count
    rules = [
        (
            needed <= others,
            f"target: {others} points are known as non-members, and the attacker's data (split.shadow_pool "
            f"{split.shadow_pool}) and test points with never-seen candidates (split.test_pool {split.test_pool}) come "
            f"from these: {needed}; lower split.shadow_pool (to 2 × split.train_size or more, {2 * split.train_size}) "
            "or split.test_pool, or name more non-members",
        ),
        (
            1 <= count < split.train_size,
            f"target.forget has {forget} of {members} members, so that a shadow of split.train_size {split.train_size} "
            f"would forget {count}; raise split.train_size (the target has {members})",
        ),
        (
            split.candidates_retained <= members - forget,
            f"split.candidates.retained is {split.candidates_retained}, but the target retains {members - forget} "
            "points; ask about fewer",
        ),
        (
            split.most_forgotten_inside <= count,
            f"split.candidates: each shadow forgets {split.most_forgotten_inside} of the {asked} candidates, but like "
            f"the target ({forget} of {members}) a shadow of {split.train_size} points forgets only {count}; ask about "
            f"{most} candidates in all or fewer (and promise a larger audit.fpr), or raise split.train_size",
        ),
    ]
    for holds, message in rules:
        if not holds:
            raise BadInput(message)


def given_warnings(split: Split, points: Mapping[str, Ids]) -> tuple[str, ...]:
    """Return what a reader must know about shadows of another size than the target, and about few forgotten points."""
    members = len(points["members"])
    warnings = list(overlap_warnings(split))
    if members != split.train_size:
        warnings.append(
            f"the target was trained on {members} points and its shadows are on {split.train_size}: promised rates "
            f"hold only as far as that makes no difference; split.train_size of {members} would match"
        )
    if split.candidates_forget < FEW:
        warnings.append(f"only {split.candidates_forget} forgotten points are asked about: AUC and TPR say little")
    return tuple(warnings)

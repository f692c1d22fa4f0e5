"""The design around one given model: who trains on what when the target, its members and its forget set are there.

Three things must hold for a never-seen point of the target and of a shadow to look alike, so that what shadows say of
points that they never saw is the null of the target (exchangeability):

- **Points.** Candidates are drawn at random, the forgotten ones from the forget set, the others from the points that
  the target is known not to have seen. A shadow is dealt its half of them whatever their group, so that nothing but the
  target itself tells a forgotten candidate from a never-seen one. Where the forget set is no random part of the data
  its points are told apart by what they are; the control ``retrain``, a model that is judged at the same points by
  shadows of the same data, then leaves chance.
- **Models.** A shadow that never saw x is, at x, a model of a random training set without x, unlearned by the method
  of the plan. So is the target at a never-seen x, if it was trained and unlearned like that. Nobody can vouch for it;
  the rate at which the target's known never-seen points are called forgotten shows how far it holds for this model.
- **Data.** What shadows train on beside candidates (``Around``) must be to them what it is to the target:

  - ``non_members``, Apollo's attacker: points that the target never saw and that are neither candidates nor test
    points, in two disjoint halves, as in every design. Shadows that search share no more with those that are asked than
    with the target: candidates. The target's training set is another draw of as many points, if data and members are
    random ones; shadows forget the share of theirs that the target forgot (``given_split``).
  - ``retained``, an auditor who has the training set: every shadow trains on all of the target's members that are no
    candidates, and forgets those that the target forgot, beside its half of the candidates. All shadows share them, and
    that is no flaw, for the target has them too. With as many never-seen candidates as forgotten ones the target is
    itself one of these shadows: the one that was dealt the forgotten half. Nothing is assumed of the retained points.
    A fraction of retained members in *some* shadows would be wrong: these would be nearer to the target than to others.

The partition holds one target, at the place of the models whose answers are judged: the given model for each method of
the plan, and for the controls ``identity`` and ``retrain`` a model of the plan's own, trained on the target's members
(without its forget set). They are asked the same questions, and judged by shadows of the same training sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from audits.apollo.design.forget_sets import Fixed, FractionRule, Inside, Rule
from audits.apollo.design.partition import Partition, draw_candidates, draw_retained
from audits.apollo.design.population import Member
from audits.apollo.design.shadow_sets import draw_offline_shadows, draw_shadows
from audits.apollo.design.split import Split, overlap_warnings
from audits.arrays import Ids
from audits.errors import BadInput, how_many
from audits.seeds import Purpose, derive_seed, numpy_generator

Around = Literal["non_members", "retained"]
"""What shadows train on beside candidates."""
FEW = 10
"""Forgotten candidates below which an AUC says little."""


def given_split(split: Split, points: Mapping[str, Ids], around: Around = "non_members") -> Split:
    """Return the sizes of the design around a given model: its own in the place of the targets' of ``split``.

    ``points``: ids by name, ``members`` and ``forget``. Shadows forget the share of their points that the target forgot
    of its own. A smaller forget set than candidates are asked for is asked about as a whole.
    """
    members, forget = len(points["members"]), len(points["forget"])
    found = replace(
        split,
        targets=1,
        targets_per_shadow_set=1,
        target_pool=members,
        forget=forget / members,
        candidates_forget=min(split.candidates_forget, forget),
    )
    if around == "non_members":
        return found
    return replace(found, train_size=members + dealt(found) - found.candidates_forget - found.candidates_retained)


def dealt(split: Split) -> int:
    """Return how many candidates a shadow trains on: half of them, rounded up."""
    return -(-split.candidates_per_target // 2)


@dataclass(frozen=True)
class AroundMembers(Rule):
    """Shadows train on the target's members that are no candidates, and forget those of them that the target forgot.

    ``base``: these members, ``rest``: those to forget. An offline shadow, which has no candidates, trains on as many
    points of its half in their place, and forgets them.
    """

    base: Ids
    rest: Ids

    def of_target(self, drawn: Ids, fixed: Fixed, rng: np.random.Generator) -> Ids:
        """Return nothing: the target is given."""
        return self.rest

    def of_shadow(
        self, half: Ids, inside: Inside, targets: Sequence[Member], rng: np.random.Generator
    ) -> tuple[Ids, Ids]:
        """Return the members and the shadow's candidates."""
        return self.together(inside, self.base, self.rest, rng)

    def of_offline(self, half: Ids, targets: Sequence[Member], rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return the members and points of the half in the place of candidates."""
        own = rng.choice(half, dealt(self.split), replace=False)
        return self.together(Inside(own, own), self.base, self.rest, rng)


def given_partition(split: Split, seed: int, points: Mapping[str, Ids], around: Around = "non_members") -> Partition:
    """Return the design around a given model. Equal arguments give equal index sets.

    ``split``: of ``given_split``; ``points``: ids by name, ``members``, ``forget`` (a part of them) and
    ``non_members``. Raises ``BadInput``, with numbers, where the points do not suffice.
    """
    check_given(split, points, around)
    others = numpy_generator(derive_seed(seed, Purpose.POOLS)).permutation(points["non_members"])
    test, shadow = others[: split.test_pool], others[split.test_pool :][: split.shadow_pool]
    halves = shadow[: len(shadow) // 2], shadow[len(shadow) // 2 :]
    rng = numpy_generator(derive_seed(seed, Purpose.TARGET, 0))
    forget = rng.permutation(points["forget"])
    target = Member("target-000", "target", 0, 0, 0, rng.permutation(points["members"]), forget)
    rule: Rule = FractionRule(split)
    unseen, test = test[: split.candidates_unseen], test[split.candidates_unseen :]
    asked = draw_candidates([target], [unseen], [draw_retained(target, split, rule, None, seed)], split, seed)
    if around == "retained":
        base, rest = (np.setdiff1d(points[name], asked.ids) for name in ("members", "forget"))
        rule = AroundMembers(split, base, rest)
    shadows = draw_shadows(asked, halves, split, rule, [target], seed)
    offline = draw_offline_shadows(halves, split, rule, [target], seed)
    return Partition(split, (target, *shadows, *offline), (asked,), test, given_warnings(split, points, around))


def check_forget(points: Mapping[str, Ids]) -> dict[str, Ids]:
    """Return given lists of points; raises ``BadInput`` where points were forgotten that are no members."""
    if len(odd := np.setdiff1d(points["forget"], points["members"])):
        raise BadInput(
            f"target.forget has {how_many(len(odd), 'point')} outside target.members, first {odd[0]}; members are "
            "the points that the original was trained on, those that were unlearned among them"
        )
    return dict(points)


def check_given(split: Split, points: Mapping[str, Ids], around: Around) -> None:
    """Refuse sizes that the given points cannot fill, with the numbers that would do."""
    forget, members, others = (len(points[name]) for name in ("forget", "members", "non_members"))
    rules = [
        (
            split.candidates_retained <= members - forget,
            f"split.candidates.retained is {split.candidates_retained}, but the target retains {members - forget} "
            "points; ask about fewer",
        ),
        (forget < members, f"target.forget has all {members} members; leave points to retain"),
        *(around_non_members if around == "non_members" else around_retained)(split, forget, members, others),
    ]
    for holds, message in rules:
        if not holds:
            raise BadInput(message)


def around_non_members(split: Split, forget: int, members: int, others: int) -> list[tuple[bool, str]]:
    """Return the rules of shadows on points that the target never saw, each with the message for when it is broken."""
    needed, count = split.shadow_pool + split.test_pool, split.forget_count or 0
    asked, most = split.candidates_per_target, 4 * count - 1 if split.candidates_retained else 2 * count
    return [
        (
            needed <= others,
            f"target: {others} points are known as non-members, and the attacker's data (split.shadow_pool "
            f"{split.shadow_pool}) and test points with never-seen candidates (split.test_pool {split.test_pool}) come "
            f"from these: {needed}; lower split.shadow_pool (to 2 × split.train_size or more, {2 * split.train_size}) "
            "or split.test_pool, or set target.around to retained: shadows then train on the target's own members",
        ),
        (
            1 <= count < split.train_size,
            f"target.forget has {forget} of {members} members, so that a shadow of split.train_size {split.train_size} "
            f"would forget {count}; raise split.train_size (the target has {members})",
        ),
        (
            split.most_forgotten_inside <= count,
            f"split.candidates: each shadow forgets {split.most_forgotten_inside} of the {asked} candidates, but like "
            f"the target ({forget} of {members}) a shadow of {split.train_size} points forgets only {count}; ask about "
            f"{most} candidates in all or fewer (and promise a larger audit.fpr), or raise split.train_size",
        ),
    ]


def around_retained(split: Split, forget: int, members: int, others: int) -> list[tuple[bool, str]]:
    """Return the same of shadows on the target's own members: non-members are for tests and offline shadows alone."""
    needed = split.test_pool + 2 * dealt(split)
    return [
        (
            needed <= others and split.shadow_pool >= 2 * dealt(split),
            f"target: {others} points are known as non-members, and test points with never-seen candidates "
            f"(split.test_pool {split.test_pool}) and offline shadows ({2 * dealt(split)}, of split.shadow_pool "
            f"{split.shadow_pool}) need {needed} of them; lower split.test_pool or split.candidates",
        )
    ]


def given_warnings(split: Split, points: Mapping[str, Ids], around: Around) -> tuple[str, ...]:
    """Return what a reader must know about shadows unlike the target in size, and about few forgotten points."""
    members, warnings = len(points["members"]), list[str]()
    if around == "non_members":
        warnings += overlap_warnings(split)
    elif split.candidates_forget != split.candidates_unseen:
        warnings.append(
            f"{split.candidates_forget} forgotten and {split.candidates_unseen} never-seen candidates: a shadow trains "
            f"on {split.train_size} points, half of all candidates among them, and the target on {members}; only with "
            "as many of the one as of the other is the target of a kind with its shadows"
        )
    if around == "non_members" and members != split.train_size:
        warnings.append(
            f"the target was trained on {members} points and its shadows are on {split.train_size}: promised rates "
            f"hold only as far as that makes no difference; split.train_size of {members} would match"
        )
    if split.candidates_forget < FEW:
        warnings.append(f"only {split.candidates_forget} forgotten points are asked about: AUC and TPR say little")
    return tuple(warnings)

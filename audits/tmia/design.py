"""The design of a TMIA audit: candidates, and training sets of targets, reference and null models, as ids.

All sets are cut from one permutation of the points: the K candidates, the attacker's points B, the filler, the rest.
Targets train on exactly half of the candidates and on filler, reference models on bootstrap samples of B, null
models, the control of the null hypothesis, on filler alone. So reference and null models never saw a candidate.
Over-fitted models, the positive control, train on nothing but half of the candidates, each again and again.

The three attacks of transfer learning (spec TMIA §1) read this design so:

| attack | models trained on the rows drawn here | the other side, drawn by ``other_side`` |
|---|---|---|
| I | teachers, which are asked | none |
| II | teachers of targets, reference teachers, null teachers | each model's student data, from one pool for all |
| III | students | each model's teacher data, from one pool for all, without the candidates |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Ids
from audits.data.groups import Part, check_groups, deal, halves
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.tmia.shared_pool import pool_warning

FILLER_FACTOR = 3
"""Training sets that the filler should hold: targets and null models that draw from fewer are alike in what reference
models are not, so that their false calls come together."""

REPEATS = 4
"""Times that an over-fitted model has each of its candidates in its training set, at the least."""

Group = Literal["target", "reference", "null", "overfitted"]
GROUPS: tuple[Group, ...] = ("target", "reference", "null")
"""Groups whose answers attacks are shown: over-fitted models among null models, of which no attack knows a member."""
TRAINED: tuple[Group, ...] = (*GROUPS, "overfitted")
SEEDED: Mapping[Group, str] = {
    "target": "target", "reference": "contrast", "null": "fresh", "overfitted": "overfitted",
}  # fmt: skip
"""The words for groups in seeds and in names of models. They are older than the groups' names: other words would be
other draws."""
Counts = Mapping[Group, int]


@dataclass(frozen=True)
class MembershipSplit:
    """Sizes of the design.

    ``targets`` (even), ``reference_models`` (n_ref) and ``null_models`` count models, each trained on ``train_size``
    points; ``candidates`` (K, even) points are asked about; ``attacker_points`` (|B|) belong to the attacker;
    ``filler`` points are what targets and null models draw from beside the candidates, all that are left when None;
    ``overfitted_models`` (even) train on half of the candidates alone.
    """

    targets: int
    reference_models: int
    null_models: int
    candidates: int
    train_size: int
    attacker_points: int
    filler: int | None = None
    overfitted_models: int = 0

    @property
    def filler_per_target(self) -> int:
        """Filler points that each target draws: ``train_size`` − K/2."""
        return self.train_size - self.candidates // 2

    @property
    def models(self) -> Counts:
        """Number of models of each group."""
        return {
            "target": self.targets,
            "reference": self.reference_models,
            "null": self.null_models,
            "overfitted": self.overfitted_models,
        }


@dataclass(frozen=True)
class MembershipDesign:
    """The design as point ids (int64) and membership.

    ``candidates``: (K,); ``attacker_points``: (|B|,), ``filler``: (F,) and ``rest``: points in no other set, on which
    nobody trains; all disjoint. ``target``: (T, n), ``reference``: (n_ref, n), with repeats, ``null``: (H, n): the
    training set of each model, n = ``train_size``. ``membership``: (T, K) bool: target t trained on candidate k; K/2 in
    each row, T/2 in each column. ``warnings``: what a reader of the results must know. ``overfitted``: (C, m), with
    repeats, and ``overfitted_membership``: (C, K) bool: the same of over-fitted models.
    """

    split: MembershipSplit
    candidates: Ids
    attacker_points: Ids
    filler: Ids
    rest: Ids
    target: Ids
    reference: Ids
    null: Ids
    membership: NDArray[np.bool_]
    warnings: tuple[str, ...]
    overfitted: Ids
    overfitted_membership: NDArray[np.bool_]


def make_membership(ids: Ids, split: MembershipSplit, seed: int, groups: Ids | None = None) -> MembershipDesign:
    """Return the design on the points ``ids`` (N,): all of a data set, or those of some classes (``points_of``).

    Equal arguments give equal sets. Each model has a seed of its own, so more targets, reference or null models leave
    the training sets of the others as they are. Targets come in pairs with complementary candidates, which balances the
    random design in rows and columns. ``groups``: (N,) the group of every point of the data set; each group is then
    among the candidates, the attacker's points or the filler alone, and a target trains on all its candidates or on
    none (``audits.data.groups.deal``; what it cuts off is part of the rest). Raises BadInput, with the field to change,
    when the points do not suffice.
    """
    if len(np.unique(ids)) != len(ids):
        raise BadInput(f"the {len(ids)} ids of a membership design name a point twice; give each once")
    filler = check_sizes(len(ids), split)
    candidates, attacker_points, others, rest = cut_points(np.asarray(ids, dtype=np.int64), split, filler, seed, groups)
    together = None if groups is None else groups[candidates]
    membership = balanced(split.targets, split.candidates, seed, together)
    size = split.train_size
    memorised = balanced(split.overfitted_models, split.candidates, derive_seed(seed, SEEDED["overfitted"]), together)
    return MembershipDesign(
        split=split,
        candidates=candidates,
        attacker_points=attacker_points,
        filler=others,
        rest=rest,
        target=training_sets(candidates, membership, others, split, seed),
        reference=rows(attacker_points, split.reference_models, size, seed, Purpose.MEMBERSHIP_REFERENCE, replace=True),
        null=rows(others, split.null_models, size, seed, Purpose.MEMBERSHIP_NULL, replace=False),
        membership=membership,
        warnings=warnings_of(split, len(others)),
        overfitted=repeated_sets(candidates, memorised, split, seed),
        overfitted_membership=memorised,
    )


def cut_points(
    ids: Ids, split: MembershipSplit, filler: int, seed: int, groups: Ids | None
) -> tuple[Ids, Ids, Ids, Ids]:
    """Return candidates, attacker's points, filler and the rest of ``ids``, in random order, or group by group."""
    rng = numpy_generator(derive_seed(seed, Purpose.MEMBERSHIP))
    if groups is None:
        first, second, third, fourth = np.split(
            rng.permutation(ids), np.cumsum([split.candidates, split.attacker_points, filler])
        )
        return first, second, third, fourth
    parts = [
        Part("split.candidates", split.candidates, halved=True),
        Part("split.attacker_points", split.attacker_points),
        *([Part("split.filler", filler)] if split.filler is not None else []),
    ]
    check_groups(ids, groups, parts)
    candidates, attacker_points, *others = deal(ids, parts, groups, rng)
    needed = split.train_size if split.null_models else split.filler_per_target
    if len(others[0]) < needed:
        raise BadInput(
            f"split.filler: data.groups leave {len(others[0])} points of whole groups for it, but a model draws "
            f"{needed}; lower split.attacker_points or split.train_size"
        )
    rest = np.setdiff1d(ids, np.concatenate([candidates, attacker_points, others[0]]))
    return candidates, attacker_points, others[0], rest


def balanced(targets: int, candidates: int, seed: int, groups: Ids | None = None) -> NDArray[np.bool_]:
    """Return (targets, candidates) bool: half of each row and half of each column; rows 2i and 2i + 1 are opposite.

    ``groups``: (candidates,) of the candidates, where those of one group are in a row all or none.
    """
    found = np.zeros((targets, candidates), dtype=np.bool_)
    for pair in range(targets // 2):
        rng = numpy_generator(derive_seed(seed, Purpose.MEMBERSHIP_PAIR, pair))
        if groups is None:
            found[2 * pair, rng.permutation(candidates)[: candidates // 2]] = True
        else:
            found[2 * pair] = halves(groups, rng)
        found[2 * pair + 1] = ~found[2 * pair]
    return found


def training_sets(
    candidates: Ids, membership: NDArray[np.bool_], filler: Ids, split: MembershipSplit, seed: int
) -> Ids:
    """Return (T, n): each target's candidates and filler (drawn without replacement), in random order."""
    found = np.empty((split.targets, split.train_size), dtype=np.int64)
    for index, own in enumerate(membership):
        rng = numpy_generator(derive_seed(seed, Purpose.MEMBERSHIP_TARGET, index))
        drawn = rng.choice(filler, split.filler_per_target, replace=False)
        found[index] = rng.permutation(np.concatenate([candidates[own], drawn]))
    return found


def repeated_sets(candidates: Ids, membership: NDArray[np.bool_], split: MembershipSplit, seed: int) -> Ids:
    """Return (C, m): each over-fitted model's candidates alone, all equally often, in random order.

    As often as fills the training set of a target, and at least ``REPEATS`` times.
    """
    half = split.candidates // 2
    times = max(REPEATS, -(-split.train_size // half))
    found = np.empty((len(membership), half * times), dtype=np.int64)
    for index, own in enumerate(membership):
        rng = numpy_generator(derive_seed(seed, SEEDED["overfitted"], index))
        found[index] = rng.permutation(np.repeat(candidates[own], times))
    return found


def rows(pool: Ids, models: int, size: int, seed: int, purpose: str, replace: bool) -> Ids:
    """Return (models, size) draws from ``pool``, each by a seed of its own."""
    found = np.empty((models, size), dtype=np.int64)
    for index in range(models):
        rng = numpy_generator(derive_seed(seed, purpose, index))
        found[index] = rng.choice(pool, size, replace=replace)
    return found


def other_side(ids: Ids, models: Counts, train_size: int, seed: int, *, without: Ids | None = None) -> dict[Group, Ids]:
    """Return what the models of each group train on at the other side of the transfer: group → (models, train_size).

    Attack II: ``ids`` are the points that students train on. Attack III: those that teachers train on; where they are
    of the candidates' data set, give the candidates as ``without``. All models draw from the same points by one rule,
    without replacement within a model, so that a target differs from reference and null models by its candidates only.
    Raises BadInput when fewer than ``train_size`` points are left.
    """
    pool = np.asarray(ids, dtype=np.int64)
    if without is not None:
        pool = pool[~np.isin(pool, without)]
    if not 0 < train_size <= len(pool):
        raise BadInput(f"transfer.train_size is {train_size}; allowed: 1 to {len(pool)}, the points of the other side")
    return {
        group: rows(pool, models.get(group, 0), train_size, seed, f"other-side/{SEEDED[group]}", replace=False)
        for group in TRAINED
    }


def check_sizes(points: int, split: MembershipSplit) -> int:
    """Return the size of the filler pool; BadInput with the field and a number that would do when sizes do not fit."""
    left = points - split.candidates - split.attacker_points
    filler = left if split.filler is None else split.filler
    needed = split.train_size if split.null_models else split.filler_per_target
    half = split.candidates // 2
    rules = [
        (split.targets > 0 and split.targets % 2 == 0, f"split.targets is {split.targets}; allowed: even, 2 or more"),
        (
            split.reference_models > 0,
            f"split.reference_models is {split.reference_models}; allowed: 1 or more reference models (n_ref)",
        ),
        (split.null_models >= 0, f"split.null_models is {split.null_models}; allowed: 0 or more null models"),
        (
            split.overfitted_models >= 0 and split.overfitted_models % 2 == 0,
            f"split.overfitted_models is {split.overfitted_models}; allowed: even, 0 or more: they train on opposite "
            "halves of the candidates",
        ),
        (
            split.candidates > 0 and split.candidates % 2 == 0,
            f"split.candidates is {split.candidates}; allowed: even, 2 or more, as each target trains on half of them",
        ),
        (
            split.train_size >= max(half, 1),
            f"split.train_size is {split.train_size}, less than half of the {split.candidates} candidates; "
            f"allowed: {half} or more",
        ),
        (
            split.attacker_points >= split.train_size,
            f"split.attacker_points is {split.attacker_points}; allowed: split.train_size ({split.train_size}) or "
            "more, best ten times that",
        ),
        (
            left >= 0,
            f"split.attacker_points is {split.attacker_points} and split.candidates {split.candidates}, together more "
            f"than the {points} points; lower one of them",
        ),
        (
            filler >= needed,
            f"split.filler is {filler}, but a {'null model' if split.null_models else 'target'} draws {needed} of it; "
            + ("lower split.attacker_points or split.train_size" if split.filler is None else f"give {needed} or more"),
        ),
        (
            0 <= filler <= left,
            f"split.filler is {filler}; allowed: up to {left}, what candidates and attacker leave of {points} points",
        ),
    ]
    for holds, message in rules:
        if not holds:
            raise BadInput(message)
    return filler


def warnings_of(split: MembershipSplit, filler: int) -> tuple[str, ...]:
    """Return what weakens a design of these sizes (spec TMIA §7)."""
    found = [pool_warning(split.attacker_points, split.train_size, split.reference_models)]
    if split.filler_per_target == 0:
        found.append(
            "split.train_size is half of the candidates, so targets share nothing but candidates and false positives "
            f"vary too much between them; use filler: a train_size of {split.candidates} or more"
        )
    if split.null_models == 0:
        found.append("split.null_models is 0: nothing shows whether p-values hold for non-members; use 20 null models")
    elif filler < FILLER_FACTOR * split.train_size:
        found.append(
            f"targets and null models draw from {filler} filler points, {filler / split.train_size:.2g} training "
            "sets, so they are alike in what reference models are not, and false calls come together; give "
            f"split.filler {FILLER_FACTOR * split.train_size} points or more (fewer split.attacker_points leave more)"
        )
    return tuple(warning for warning in found if warning)

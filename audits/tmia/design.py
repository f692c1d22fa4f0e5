"""The design of a TMIA audit: candidates, and training sets of targets, contrast and fresh OUT models, as ids.

All sets are cut from one permutation of the points: the K candidates, the attacker's pool B, the filler pool, the rest.
Targets train on exactly half of the candidates and on filler, contrast models on bootstrap samples of B, fresh OUT
models, the control of the null hypothesis, on filler alone. So contrast and fresh models never saw a candidate.

The three attacks of transfer learning (spec TMIA §1) read this design so:

| attack | models trained on the rows drawn here | the other side, drawn by ``other_side`` |
|---|---|---|
| I | teachers, which are asked | none |
| II | teachers of targets, contrast teachers, fresh teachers | each model's student data, from one pool for all |
| III | students | each model's teacher data, from one pool for all, without the candidates |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Ids
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.tmia.shared_pool import pool_warning

FILLER_FACTOR = 3
"""Training sets that the filler should hold: targets and fresh models that draw from fewer are alike in what contrast
models are not, so that their false calls come together."""

Group = Literal["target", "contrast", "fresh"]
GROUPS: tuple[Group, ...] = ("target", "contrast", "fresh")
Counts = Mapping[Group, int]


@dataclass(frozen=True)
class MembershipSplit:
    """Sizes of the design.

    ``targets`` (even), ``contrast`` (n_ref) and ``fresh`` count models, each trained on ``train_size`` points;
    ``candidates`` (K, even) points are asked about; ``pool`` points belong to the attacker (|B|); ``filler`` points are
    what targets and fresh models draw from beside the candidates, all that are left when None.
    """

    targets: int
    contrast: int
    fresh: int
    candidates: int
    train_size: int
    pool: int
    filler: int | None = None

    @property
    def filler_per_target(self) -> int:
        """Filler points that each target draws: ``train_size`` − K/2."""
        return self.train_size - self.candidates // 2

    @property
    def models(self) -> Counts:
        """Number of models of each group."""
        return {"target": self.targets, "contrast": self.contrast, "fresh": self.fresh}


@dataclass(frozen=True)
class MembershipDesign:
    """The design as point ids (int64) and membership.

    ``candidates``: (K,); ``pool``: (|B|,), ``filler``: (F,) and ``rest``: points in no other set, on which nobody
    trains; all disjoint. ``target``: (T, n), ``contrast``: (n_ref, n), with repeats, ``fresh``: (H, n): the training
    set of each model, n = ``train_size``. ``membership``: (T, K) bool: target t trained on candidate k; K/2 in each
    row, T/2 in each column. ``warnings``: what a reader of the results must know.
    """

    split: MembershipSplit
    candidates: Ids
    pool: Ids
    filler: Ids
    rest: Ids
    target: Ids
    contrast: Ids
    fresh: Ids
    membership: NDArray[np.bool_]
    warnings: tuple[str, ...]


def make_membership(ids: Ids, split: MembershipSplit, seed: int) -> MembershipDesign:
    """Return the design on the points ``ids`` (N,): all of a data set, or those of some classes (``points_of``).

    Equal arguments give equal sets. Each model has a seed of its own, so more targets, contrast or fresh models leave
    the training sets of the others as they are. Targets come in pairs with complementary candidates, which balances the
    random design in rows and columns. Raises BadInput, with the field to change, when the points do not suffice.
    """
    if len(np.unique(ids)) != len(ids):
        raise BadInput(f"the {len(ids)} ids of a membership design name a point twice; give each once")
    filler = check_sizes(len(ids), split)
    order = numpy_generator(derive_seed(seed, Purpose.MEMBERSHIP)).permutation(np.asarray(ids, dtype=np.int64))
    ends = np.cumsum([split.candidates, split.pool, filler])
    candidates, pool, others, rest = np.split(order, ends)
    membership = balanced(split.targets, split.candidates, seed)
    size = split.train_size
    return MembershipDesign(
        split=split,
        candidates=candidates,
        pool=pool,
        filler=others,
        rest=rest,
        target=training_sets(candidates, membership, others, split, seed),
        contrast=rows(pool, split.contrast, size, seed, Purpose.MEMBERSHIP_CONTRAST, replace=True),
        fresh=rows(others, split.fresh, size, seed, Purpose.MEMBERSHIP_FRESH, replace=False),
        membership=membership,
        warnings=warnings_of(split, filler),
    )


def balanced(targets: int, candidates: int, seed: int) -> NDArray[np.bool_]:
    """Return (targets, candidates) bool: half of each row and half of each column; rows 2i and 2i + 1 are opposite."""
    found = np.zeros((targets, candidates), dtype=np.bool_)
    for pair in range(targets // 2):
        rng = numpy_generator(derive_seed(seed, Purpose.MEMBERSHIP_PAIR, pair))
        found[2 * pair, rng.permutation(candidates)[: candidates // 2]] = True
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
    without replacement within a model, so that a target differs from contrast and fresh models by its candidates only.
    Raises BadInput when fewer than ``train_size`` points are left.
    """
    pool = np.asarray(ids, dtype=np.int64)
    if without is not None:
        pool = pool[~np.isin(pool, without)]
    if not 0 < train_size <= len(pool):
        raise BadInput(f"transfer.train_size is {train_size}; allowed: 1 to {len(pool)}, the points of the other side")
    return {
        group: rows(pool, models.get(group, 0), train_size, seed, f"other-side/{group}", replace=False)
        for group in GROUPS
    }


def check_sizes(points: int, split: MembershipSplit) -> int:
    """Return the size of the filler pool; BadInput with the field and a number that would do when sizes do not fit."""
    left = points - split.candidates - split.pool
    filler = left if split.filler is None else split.filler
    needed = split.train_size if split.fresh else split.filler_per_target
    half = split.candidates // 2
    rules = [
        (split.targets > 0 and split.targets % 2 == 0, f"split.targets is {split.targets}; allowed: even, 2 or more"),
        (split.contrast > 0, f"split.contrast is {split.contrast}; allowed: 1 or more contrast models (n_ref)"),
        (split.fresh >= 0, f"split.fresh is {split.fresh}; allowed: 0 or more fresh OUT models"),
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
            split.pool >= split.train_size,
            f"split.pool is {split.pool}; allowed: split.train_size ({split.train_size}) or more, best ten times that",
        ),
        (
            left >= 0,
            f"split.pool is {split.pool} and split.candidates {split.candidates}, together more than the {points} "
            "points; lower one of them",
        ),
        (
            filler >= needed,
            f"split.filler is {filler}, but {'a fresh model' if split.fresh else 'a target'} draws {needed} of it; "
            f"{'lower split.pool or split.train_size' if split.filler is None else f'give {needed} or more'}",
        ),
        (
            0 <= filler <= left,
            f"split.filler is {filler}; allowed: up to {left}, what candidates and pool leave of {points} points",
        ),
    ]
    for holds, message in rules:
        if not holds:
            raise BadInput(message)
    return filler


def warnings_of(split: MembershipSplit, filler: int) -> tuple[str, ...]:
    """Return what weakens a design of these sizes (spec TMIA §7)."""
    found = [pool_warning(split.pool, split.train_size, split.contrast)]
    if split.filler_per_target == 0:
        found.append(
            "split.train_size is half of the candidates, so targets share nothing but candidates and false positives "
            f"vary too much between them; use filler: a train_size of {split.candidates} or more"
        )
    if split.fresh == 0:
        found.append("split.fresh is 0: nothing shows whether p-values hold for non-members; use 20 fresh OUT models")
    elif filler < FILLER_FACTOR * split.train_size:
        found.append(
            f"targets and fresh OUT models draw from {filler} filler points, {filler / split.train_size:.2g} training "
            "sets, so they are alike in what contrast models are not, and false calls come together; give "
            f"split.filler {FILLER_FACTOR * split.train_size} points or more (a smaller split.pool leaves more)"
        )
    return tuple(warning for warning in found if warning)

"""The design of a TMIA audit of a given model: what it was trained on is known, all other models are made for it.

The K candidates are K/2 of the model's members and K/2 of its known non-members, drawn at random: one model has no twin
with the other half, so nothing balances a candidate over models, and an interval over them does not exist. All that
the attacker and the controls train on comes from the non-members that are left: the attacker's points B, the filler,
the rest. So reference and null models never saw a candidate, as without a given model.

Controls, models of the plan's own recipe that are judged as the given one is, train on a random half of the candidates,
whichever of them the given model trained on, and otherwise on the given model's other members (on filler where these
are too few). They show what the attacks could have found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from audits.arrays import Ids
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.tmia.design import MembershipDesign, MembershipSplit, balanced, rows, training_sets, warnings_of

LIKE = 0.1
"""Share of the given model's training set by which those of the plan's models may be larger or smaller unremarked."""


def make_given_membership(
    members: Ids, others: Ids, split: MembershipSplit, controls: int, seed: int
) -> MembershipDesign:
    """Return the design beside a model that was trained on ``members`` and not on ``others`` (ids without overlap).

    ``membership`` (1 + ``controls``, K): the given model's row, then those of the controls, in pairs of opposite
    halves; ``target`` (``controls``, n): the training sets of the controls. ``split.targets`` does not count. Equal
    arguments give equal sets, and each model has a seed of its own. Raises BadInput, with the field to change, where
    the points do not suffice.
    """
    filler = check_given(len(members), len(others), split, controls)
    half = split.candidates // 2
    rng = numpy_generator(derive_seed(seed, Purpose.MEMBERSHIP))
    asked, trained = np.split(rng.permutation(np.asarray(members, np.int64)), [half])
    parts = np.cumsum([half, split.attacker_points, filler])
    unseen, attacker_points, spare, rest = np.split(rng.permutation(np.asarray(others, np.int64)), parts)
    candidates = rng.permutation(np.concatenate([asked, unseen]))
    own = replace(split, targets=controls, overfitted_models=0)
    halves = balanced(controls, split.candidates, seed)
    beside = trained if len(trained) >= split.filler_per_target else spare
    size = split.train_size
    return MembershipDesign(
        split=own,
        candidates=candidates,
        attacker_points=attacker_points,
        filler=spare,
        rest=rest,
        target=training_sets(candidates, halves, beside, own, seed),
        reference=rows(attacker_points, split.reference_models, size, seed, Purpose.MEMBERSHIP_REFERENCE, replace=True),
        null=rows(spare, split.null_models, size, seed, Purpose.MEMBERSHIP_NULL, replace=False),
        membership=np.concatenate([np.isin(candidates, asked)[None], halves]),
        warnings=(*given_warnings(len(members), split, controls), *warnings_of(own, len(spare))),
        overfitted=np.zeros((0, size), np.int64),
        overfitted_membership=np.zeros((0, split.candidates), np.bool_),
    )


def check_given(members: int, others: int, split: MembershipSplit, controls: int) -> int:
    """Return the size of the filler; BadInput with the field and a number that would do where sizes do not fit."""
    half = split.candidates // 2
    left = others - half - split.attacker_points
    filler = left if split.filler is None else split.filler
    needed = split.train_size if split.null_models else 0
    if controls and members - half < split.filler_per_target:
        needed = max(needed, split.filler_per_target)
    checks = [
        (split.reference_models > 0, "split.reference_models is 0; allowed: 1 or more reference models (n_ref)"),
        (
            split.candidates > 1 and split.candidates % 2 == 0,
            f"split.candidates is {split.candidates}; allowed: even, 2 or more: half members, half non-members",
        ),
        (
            split.train_size >= half,
            f"split.train_size is {split.train_size}, less than half of the {split.candidates} candidates; "
            f"allowed: {half} or more",
        ),
        (
            half <= members,
            f"split.candidates is {split.candidates}, of which {half} are to be members, but target.members has "
            f"{members} points of the classes that take part; allowed: up to {2 * members}",
        ),
        (
            others > 0,
            "target.members leaves no known non-members of the classes that take part; attacks and controls need some: "
            "name the training points alone, or target.non_members",
        ),
        (
            left >= 0,
            f"split.attacker_points is {split.attacker_points} and half of split.candidates {half}, together more than "
            f"the {others} known non-members (target.non_members) of the classes that take part; lower one of them",
        ),
        (
            split.attacker_points >= split.train_size,
            f"split.attacker_points is {split.attacker_points}; allowed: split.train_size ({split.train_size}) or "
            "more, best ten times that",
        ),
        (
            filler >= needed,
            f"split.filler is {filler}, but a {'null model' if split.null_models else 'control'} draws {needed} of it; "
            + ("lower split.attacker_points or split.train_size" if split.filler is None else f"give {needed} or more"),
        ),
        (
            filler <= left,
            f"split.filler is {filler}; allowed: up to {left}, what candidates and attacker leave of {others} known "
            "non-members",
        ),
    ]
    for holds, message in checks:
        if not holds:
            raise BadInput(message)
    return filler


def given_warnings(members: int, split: MembershipSplit, controls: int) -> tuple[str, ...]:
    """Return what weakens a design beside a model of ``members`` training points."""
    found = []
    if abs(split.train_size - members) > LIKE * members:
        found.append(
            f"split.train_size is {split.train_size}, but the target was trained on {members} points: a model of other "
            "size is surer or less sure of every point, so that p-values of non-members need not hold; read the rate "
            f"found on its own non-members, or train on {members}"
        )
    if not controls:
        found.append(
            "target.controls is 0: nothing shows what the attacks would have found in a model of this recipe, so that "
            "a null result says little; use 2"
        )
    return tuple(found)

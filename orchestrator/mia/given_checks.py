"""Checks of a membership plan with a target, and what of the design does not apply to a model that is given."""

from __future__ import annotations

import math
from itertools import repeat
from typing import TYPE_CHECKING

from audits.errors import BadInput
from audits.home import expanded
from audits.mia.attacks import MIA_ATTACKS
from audits.mia.given_pool import half_of_pool
from audits.targets.members import read_members
from orchestrator.engine.plan.errors import shown
from orchestrator.engine.plan.fits import build_without_numbers, class_indices
from orchestrator.engine.plan.points import points_in
from orchestrator.engine.plan.target import unreadable
from orchestrator.engine.run.given import check_target as check_model
from orchestrator.mia.plan import NULLS_NEEDED, GivenTarget, MiaPlan, Split

if TYPE_CHECKING:
    from audits.data.dataset import Description

UNUSED = {
    "pools": (1, "a given model has one pool, of its members and of known non-members"),
    "strangers": (0, "with a target there are no other pools to take shadows from"),
    "null_models": (0, "with a target there are no other pools to take models from"),
    "canaries": (0, "a given model cannot be taught wrong labels"),
}
"""Fields of ``split`` that have one value with a target, and why."""


def as_given(plan: MiaPlan) -> MiaPlan:
    """Return a plan with a target as it is meant: defaults that do not apply to a given model are replaced.

    One target has half as many non-members among the points asked about as twins have, and no other pool: attacks that
    ask some points ask about as many as the promised rates need, unless the plan says a number.
    """
    if plan.target is None:
        return plan
    plain = Split()
    split = {name: value for name, (value, _) in UNUSED.items() if getattr(plan.split, name) == getattr(plain, name)}
    asked = plan.audit.hop_skip_jump
    points = asked.points
    if points == type(asked)().points:
        needed = math.ceil(2 * NULLS_NEEDED / min(plan.audit.fpr) * (1 - 1e-9))
        points = max(points, min(needed, plan.split.test, 2 * plan.split.train_size))
    audit = plan.audit.model_copy(update={"hop_skip_jump": asked.model_copy(update={"points": points})})
    return plan.model_copy(update={"split": plan.split.model_copy(update=split), "audit": audit})


def target_problems(plan: MiaPlan) -> list[str]:
    """Return what stands beside a target and cannot."""
    if plan.target is None:
        return []
    lines = [
        f"split.{name} is {getattr(plan.split, name)}, but {why}; leave it out"
        for name, (value, why) in UNUSED.items()
        if getattr(plan.split, name) != value
    ]
    if plan.data.groups is not None:
        lines.append(
            f"data.groups is {shown(plan.data.groups)}, but whether whole groups were members of a given model is not "
            "known; leave it out, or leave out target"
        )
    known = {name: MIA_ATTACKS[name] for name in plan.audit.attacks if name in MIA_ATTACKS}
    accesses: dict[str, str] = {name: attack.access for name, attack in known.items()}
    return [*lines, *unreadable(accesses, plan.target, [name for name, attack in known.items() if attack.subset])]


def check_target(plan: MiaPlan, facts: Description) -> None:
    """Refuse a target that cannot be read, and one whose members and non-members do not suffice.

    That is as far as both are known before reading the data.
    """
    target = plan.target
    if target is None:
        return
    if facts.shape and facts.classes:
        count = len(class_indices(plan.split.classes, facts.classes, "split.classes"))
        check_model(plan, lambda: build_without_numbers(plan.model, facts.shape, count), count)
    if not facts.points or any(map(is_gone, target.named(target.POINTS).values(), repeat(target))):
        return
    points = points_in(plan.data, facts)
    members = read_members(target.members, points)
    others = facts.points - len(members)
    if target.non_members is not None:
        others = len(read_members(target.non_members, points, "target.non_members"))
    check_sizes(plan, len(members), others)


def check_sizes(plan: MiaPlan, members: int, non_members: int) -> None:
    """Refuse numbers of members and of known non-members that cannot resolve what the plan promises."""
    split, rate = plan.split, min(plan.audit.fpr)
    half = half_of_pool(members, non_members, split.train_size, split.test)
    if half * rate < NULLS_NEEDED * (1 - 1e-9):
        raise BadInput(
            f"audit.fpr {rate:g} cannot be resolved by {half} known non-members in the pool (target: {members} members "
            f"and {non_members} known non-members, split.test {split.test}, split.train_size {split.train_size}): it "
            f"needs {math.ceil(NULLS_NEEDED / rate * (1 - 1e-9))}; promise a larger rate, or give more points"
        )


def is_gone(name: str, target: GivenTarget) -> bool:
    """Say whether a file is not there, but was when the plan was written: the store may have what it held."""
    return name in target.sha256 and not expanded(name).exists()

"""Checks of a plan with a target: what it cannot say beside one, and what every result of one must say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from audits.apollo.design.given import check_forget, given_partition, given_split
from audits.home import expanded
from audits.statistics.one_target import SAYS
from audits.targets.rules import is_rule
from orchestrator.apollo.plan import CONTROLS
from orchestrator.apollo.split import Split
from orchestrator.apollo.split_checks import retained_problems, size_problems
from orchestrator.engine.given import points_of

if TYPE_CHECKING:
    from audits.apollo.design.split import Split as Design
    from audits.data.ids import Points
    from orchestrator.apollo.plan import ApolloPlan, ApolloTarget

UNREAD = ("targets", "target_pool", "forget")
"""Fields of ``split`` about targets that the plan would make."""


def sizes_of(plan: ApolloPlan) -> Design:
    """Return the sizes of the design as far as the plan alone tells them; pools and forget set are the target's."""
    split = plan.split.design()
    if plan.target is None:
        return split
    size = split.train_size if plan.target.around == "non_members" else 2  # the members, which the plan does not say
    return replace(split, targets=1, targets_per_shadow_set=1, train_size=size, target_pool=size, forget=0.5)


def target_problems(plan: ApolloPlan) -> list[str]:
    """Return what a plan cannot say beside a target."""
    rules = [
        (
            plan.split.forget_share is not None,
            "split.forget names classes or ids, but target.forget says what was forgotten; leave split.forget out",
        ),
        (
            plan.split.points == "random",
            f"split.points is {plan.split.points}, which needs models trained on a pool of targets, and with a target "
            "none is trained; leave it at random",
        ),
        (
            not plan.audit.radii,
            "audit.radii is true, which trains each target again from its own start, and a given target is never "
            "trained; leave it false",
        ),
        (
            not plan.audit.disclosure,
            "audit.disclosure is true, which watches the targets train, and a given target is never trained; leave it "
            "false (`orch audit gnq --target` says which of a given model's points stand out)",
        ),
        (
            plan.data.groups is None,
            "data.groups is given, but whether a target's members were dealt in whole groups is not known; leave "
            "data.groups out",
        ),
        (
            any(entry.method not in CONTROLS for entry in plan.unlearning),
            "unlearning has only the controls; name the method that the target was unlearned by, as far as you know it",
        ),
    ]
    lines = [message for holds, message in rules if not holds]
    return [*lines, *size_problems(sizes_of(plan)), *retained_problems(sizes_of(plan))]


def check_points(plan: ApolloPlan, target: ApolloTarget, points: Points) -> None:
    """Refuse lists of points that the design cannot be drawn from; but for files that are gone and have a sha256."""
    files = [text for text in target.named(target.POINTS).values() if not is_rule(text)]
    if all(expanded(name).exists() or name not in target.sha256 for name in files):
        lists = check_forget(points_of(target, points))
        given_partition(given_split(plan.split.design(), lists, target.around), plan.seed, lists, target.around)


def target_warnings(plan: ApolloPlan) -> tuple[str, ...]:
    """Return what every audit of a given model must say."""
    named = [entry.label for entry in plan.unlearning if entry.method not in CONTROLS]
    each = (
        ""
        if len(named) == 1
        else f" ({len(named)} methods are named: the target is judged once by the shadows of each)"
    )
    standard = Split()
    unread = [name for name in UNREAD if getattr(plan.split, name) != getattr(standard, name)]
    set_aside = (
        [f"{', '.join(f'split.{name}' for name in unread)}: not read, for the target is given"] if unread else []
    )
    return (
        *set_aside,
        SAYS,
        "shadows are trained by the plan's recipe and unlearned by its method, which need not be the target's: "
        "promised rates depend on it; the rate found on the target's known non-members shows how far they hold, and "
        f"voids them where it is above{each}",
    )

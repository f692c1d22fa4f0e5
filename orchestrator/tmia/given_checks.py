"""Checks of a TMIA plan with a target: what cannot be asked of one given model, and whether its files fit the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.home import expanded
from audits.targets.members import read_members
from audits.targets.rules import is_rule
from audits.tmia.attacks import ATTACKS
from orchestrator.engine.plan.fits import build_without_numbers
from orchestrator.engine.plan.points import points_in
from orchestrator.engine.plan.target import unreadable
from orchestrator.engine.run.given import check_target as check_model

if TYPE_CHECKING:
    from audits.data.dataset import Description
    from orchestrator.tmia.plan import TmiaPlan

FIXED = ("audit.mode", "data", "model", "split.classes", "transfer.classes", "transfer.data")
"""What one given model is and is asked about: it cannot differ between variants."""
ADAPTIVE = ("distance", "votes")
"""What is found by asking about inputs of an attack's own making."""


def target_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with a plan because it has a target."""
    if plan.target is None:
        return []
    known = {name: ATTACKS[name] for name in plan.audit.attacks if name in ATTACKS}
    lines = [
        f"audit.attacks: {name} reads the truth about other targets, of which there are none beside a given one; leave "
        "it out"
        for name, attack in known.items()
        if attack.access == "oracle"
    ]
    shown = {name: attack.access for name, attack in known.items() if attack.access != "oracle"}
    lines += unreadable(shown, plan.target, [name for name in shown if set(known[name].reads) & set(ADAPTIVE)])
    if plan.target.controls % 2:
        lines.append(
            f"target.controls is {plan.target.controls}; allowed: even, as controls train on opposite halves of the "
            "candidates, or 0"
        )
    if plan.audit.reconstruction.pairs == "paper":
        lines.append(
            "audit.reconstruction.pairs is 'paper', which asks the target about the attacker's points as well; with a "
            "target give 'reference'"
        )
    if plan.data.groups is not None:
        lines.append(
            "data.groups is given beside a target: its members and non-members are known point by point, and groups "
            "are not kept apart there; leave data.groups out"
        )
    for name, changes in plan.variants.items():
        lines += [
            f"variants.{name}: {field} cannot differ between variants of one given model; leave the variant out "
            "(--set variants={} leaves out all)"
            for field in changes
            if any(field == fixed or field.startswith(f"{fixed}.") for fixed in (*FIXED, "target"))
        ]
    return lines


def set_aside(plan: TmiaPlan) -> tuple[str, ...]:
    """Return what the plan says that does not apply to a given model, a line each."""
    if plan.target is None:
        return ()
    return (
        "split.targets and split.overfitted_models do not count beside a target: one given model is asked, and "
        f"{plan.target.controls} models of the plan's own recipe (target.controls) are judged in the same way",
    )


def target_warnings(plan: TmiaPlan) -> tuple[str, ...]:
    """Return what every audit of a given model must say."""
    if plan.target is None:
        return ()
    return (
        "reference models are trained by the plan's recipe, which need not be the target's: promised rates depend on "
        "it; the rate found on the target's known non-members shows how far they hold, and voids them where it is "
        "above",
    )


def check_target(plan: TmiaPlan, facts: Description, asked: Description, classes: int) -> None:
    """Refuse lists of points and weights that do not fit the data set and the architecture.

    ``facts``: of the candidates' data set, ``asked``: of that whose ``classes`` the given model tells apart. A file
    that is gone is left to the run, whose store may have it.
    """
    if plan.target is None:
        return
    target = plan.target
    for field, text in target.named(target.POINTS).items():
        if facts.points and (is_rule(text) or there(text)):
            read_members(text, points_in(plan.data, facts), f"target.{field}")
    if asked.shape:
        check_model(plan, lambda: build_without_numbers(plan.model, asked.shape, classes), classes)


def there(file: str) -> bool:
    """Say whether a file can be looked into."""
    return expanded(file).is_file()

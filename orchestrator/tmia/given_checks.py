"""Checks of a TMIA plan with a target: what cannot be asked of one given model, and whether its files fit the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from audits.errors import BadInput
from audits.targets.members import is_rule, read_members
from audits.targets.weights import read_weights
from audits.tmia.attacks import ATTACKS
from orchestrator.engine.plan.errors import under
from orchestrator.engine.plan.fits import build_without_numbers

if TYPE_CHECKING:
    from audits.data.dataset import Description
    from orchestrator.tmia.plan import TmiaPlan

FIXED = ("audit.mode", "data", "model", "split.classes", "transfer.classes", "transfer.data")
"""What one given model is and is asked about: it cannot differ between variants."""
SHOWN = ("labels", "posteriors", "white_box")
"""What a given model shows: its weights, so all that an attack may read of a target."""


def target_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with a plan because it has a target."""
    if plan.target is None:
        return []
    lines = [
        f"audit.attacks: {name} reads {ATTACKS[name].access}, which a given model does not show; leave it out"
        for name in plan.audit.attacks
        if name in ATTACKS and ATTACKS[name].access not in SHOWN
    ]
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
        f"split.targets does not count beside a target: one given model is asked, and {plan.target.controls} models of "
        "the plan's own recipe (target.controls) are judged in the same way",
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
            read_members(text, facts.points, f"target.{field}")
    if asked.shape and there(target.weights):
        try:
            read_weights(target.weights, build_without_numbers(plan.model, asked.shape, classes))
        except BadInput as error:
            raise BadInput(under("target", str(error))) from None


def there(file: str) -> bool:
    """Say whether a file can be looked into."""
    return Path(file).expanduser().is_file()

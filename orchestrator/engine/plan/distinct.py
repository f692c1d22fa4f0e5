"""Settings of a sweep that come to the same plan: they are one setting, run and counted once."""

from __future__ import annotations

from collections.abc import Mapping

from audits.errors import how_many
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.wording import first_of
from tune_spaces.registry import Settings


def distinct(settings: Settings, plan: BasePlan) -> tuple[Settings, dict[str, str]]:
    """Return the ``settings`` around ``plan`` that differ in a field, and the others: name → the first like it.

    Raises BadInput for one that is no plan.
    """
    found, same, first = dict(settings), dict[str, str](), dict[str, str]()
    for name, changes in settings.items():
        plan_hash = (plan.changed(changes) if changes else plan).plan_hash
        if (earlier := first.setdefault(plan_hash, name)) != name:
            same[name] = earlier
            del found[name]
    return found, same


def told_same(same: Mapping[str, str]) -> str:
    """Return the line that says which settings count as one with others; ``same`` has at least one."""
    pairs = first_of([f"{name} = {first}" for name, first in same.items()])
    verb = "is" if len(same) == 1 else "are"
    return f"{how_many(len(same), 'setting')} {verb} equal to others in all fields and not counted: {pairs}"

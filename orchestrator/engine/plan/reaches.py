"""All that a plan reaches: by itself, in its own settings, and in those of a sweep."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput
from orchestrator.engine.plan.addresses import addresses_of, concerns, reached
from orchestrator.engine.plan.overrides import apply_overrides
from orchestrator.engine.plan.reach import Reach
from tune_spaces.space import MOST_SETTINGS

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Sweep

Changes = Mapping[str, Any]
"""Dotted plan fields → values."""


def reaches(plan: BasePlan, changes: Iterable[Changes] = ()) -> tuple[Reach, ...]:
    """Return all that a plan reaches, by itself, in its own settings and with each of ``changes``, each once.

    Changes that cannot be made are left to the check of the plan that they would give.
    """
    values, kind = plan.resolved(), type(plan)
    paths = tuple(addresses_of(kind))
    found: dict[Reach, None] = {}
    seen = set()
    for each in ({}, *plan.settings().values(), *changes):
        counting = {path: value for path, value in each.items() if any(concerns(path, one) for one in paths)}
        if (told := json.dumps(counting, sort_keys=True, default=str)) in seen:
            continue
        seen.add(told)
        try:
            changed = apply_overrides(values, counting.items())
        except BadInput:
            continue
        found |= dict.fromkeys(reached(kind, changed))
    return tuple(found)


def changes_of(sweep: Sweep, plan: BasePlan) -> Iterator[Changes]:
    """Yield the changes of all settings of a sweep; of an adaptive search those of its fields that are addresses."""
    search = sweep.search
    if search is None or not search.adaptive:
        yield from sweep.settings(plan.resolved()).values()
        return
    paths = tuple(addresses_of(type(plan)))
    about = [each for each in search.space.dimensions if any(concerns(each.path, path) for path in paths)]
    if math.prod(len(each.values) for each in about) > MOST_SETTINGS:
        raise BadInput(f"space: {', '.join(each.path for each in about)}: more than {MOST_SETTINGS} addresses")
    for values in itertools.product(*(each.values for each in about)):
        yield dict(zip((each.path for each in about), values, strict=True))

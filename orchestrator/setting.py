"""One variant of a plan, with its jobs: what a sweep has many of and an audit has one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.jobs import Schedule

if TYPE_CHECKING:
    from orchestrator.plan_base import BasePlan


@dataclass(frozen=True)
class Setting:
    """One setting of a sweep (or the only one of an audit): its plan, what differs, and its jobs."""

    name: str
    overrides: Mapping[str, Any]
    plan: BasePlan
    jobs: Schedule

    @property
    def cost(self) -> int:
        """A rough measure of its work after training, by which the dearest settings go first."""
        search = getattr(self.plan.audit, "search", None)
        return search.steps if search is not None else len(self.jobs.search_units)


def plans_of(settings: Sequence[Setting]) -> list[BasePlan]:
    """Return the plans of ``settings``."""
    return [setting.plan for setting in settings]

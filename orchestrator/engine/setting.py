"""One variant of a plan, with its jobs: a sweep has many of them, an audit one or more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engine.jobs.job import Job, of_stage
from orchestrator.engine.plan.base import BasePlan


@dataclass(frozen=True)
class Setting:
    """One setting of a sweep (or of an audit): its plan, what differs from the base plan, and its jobs.

    ``weight``: a rough measure of its work after training, by which the dearest settings go first.
    """

    name: str
    overrides: Mapping[str, Any]
    plan: BasePlan
    jobs: tuple[Job, ...]
    weight: int = 0

    def of(self, *stages: str) -> tuple[Job, ...]:
        """Return the jobs of one of ``stages``."""
        return of_stage(self.jobs, *stages)


def plans_of(settings: Sequence[Setting]) -> list[BasePlan]:
    """Return the plans of ``settings``."""
    return [setting.plan for setting in settings]

"""The rehearsal of a GNQ audit: the audit once more, on pools of the points that it leaves over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from audits.seeds import derive_seed
from orchestrator.engine.rehearsal import RehearsedPools
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.kind import KIND
from orchestrator.gnq.plan import GnqPlan


def within(plan: GnqPlan) -> GnqPlan:
    """Return the plan of the audit that is the rehearsal of ``plan``: with a seed of its own."""
    return plan.changed({"seed": derive_seed(plan.seed, "rehearsal")})


class RehearsedGnq(RehearsedPools, GnqJobs):
    """Lays out the rehearsal of a plan."""

    within, laid_out = staticmethod(within), GnqJobs


def probe(plan: GnqPlan, *others: Any) -> Any:
    """Return what guesses the seconds of the jobs of the rehearsal of ``plan``."""
    return KIND.probe(within(plan), *others)


PLACE = "orchestrator.gnq.rehearsal:REHEARSAL"
REHEARSAL = replace(KIND, place=PLACE, design=RehearsedGnq, probe=probe, selection=None)

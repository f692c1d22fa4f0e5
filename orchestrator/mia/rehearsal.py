"""The rehearsal of a membership audit: the audit once more, on pools of the points that it leaves over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from audits.seeds import derive_seed
from orchestrator.engine.rehearsal import RehearsedPools
from orchestrator.mia.jobs import MiaJobs
from orchestrator.mia.kind import KIND
from orchestrator.mia.plan import MiaPlan


def within(plan: MiaPlan) -> MiaPlan:
    """Return the plan of the audit that is the rehearsal of ``plan``: with a seed of its own, without null models."""
    return plan.changed({"seed": derive_seed(plan.seed, "rehearsal"), "split.null_models": 0})


class RehearsedMia(RehearsedPools, MiaJobs):
    """Lays out the rehearsal of a plan."""

    within, laid_out = staticmethod(within), MiaJobs


def probe(plan: MiaPlan, *others: Any) -> Any:
    """Return what guesses the seconds of the jobs of the rehearsal of ``plan``."""
    return KIND.probe(within(plan), *others)


PLACE = "orchestrator.mia.rehearsal:REHEARSAL"
REHEARSAL = replace(KIND, place=PLACE, design=RehearsedMia, probe=probe, selection=None)

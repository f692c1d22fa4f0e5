"""The cost of a trial of a search: which models all trials share, and how many each trains for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Kind

SEARCH = "audit.search"


@dataclass(frozen=True)
class Outlook:
    """Jobs that bring in, make or measure models in every trial, how many models that is, and the most of one alone."""

    shared: tuple[Job, ...]
    models: int
    own: int

    def line(self, fields: Sequence[str]) -> str:
        """Return what a trial costs in one line; ``fields`` are the paths that the search varies."""
        own = f"each trial trains up to {self.own} {'more' if self.models else 'models'}" if self.own else ""
        shared = f"{self.models} models are shared by all trials" if self.models or not own else ""
        return f"fields of {sections(fields)}: {', '.join(part for part in (shared, own) if part)}"


def outlook(kind: Kind, drawn: Sequence[Sequence[Job]]) -> Outlook:
    """Return what trials share, judged by the jobs of some that were ``drawn`` from the space."""
    makes = {stage.name for stage in kind.stages if stage.makes == "model"}
    keys = [{job.key for job in jobs} for jobs in drawn]
    common = set.intersection(*keys)
    early = {job.key for job in (*kind.brought_in(drawn[0]), *kind.making_models(drawn[0]))} & common
    shared = tuple({job.key: job for job in drawn[0] if job.key in early}.values())
    models = {job.key for job in shared if job.stage in makes}
    own = max(len({job.key for job in jobs if job.stage in makes} - models) for jobs in drawn)
    return Outlook(shared, len(models), own)


def sections(fields: Sequence[str]) -> str:
    """Return the sections of a plan that hold ``fields``, in words."""
    names = [
        "the attack search" if field == SEARCH or field.startswith(f"{SEARCH}.") else field.partition(".")[0]
        for field in fields
    ]
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} and {last}" if most else last

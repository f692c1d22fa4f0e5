"""The work of one or more plans, stage by stage: what there is to do, and what it takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from audits.data.dataset import Dataset
from orchestrator.engine.cost.history import PastWork
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Design, Kind, Probe, nothing_published
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.distinct import distinct
from orchestrator.engine.published import Published, Which, listed
from orchestrator.engine.store.store import Store
from orchestrator.engine.target_check import check_target_of
from orchestrator.engine.timings import Timings
from tune_spaces.registry import Settings, Sweep

Basis = Literal["the store", "a probe", "the store, a probe", "as stated"]
Work = Mapping[str, tuple[Job, Probe]]
Audited = dict[str, tuple[BasePlan, Sequence[Job]]]
"""Settings of which targets are asked: name → plan and jobs."""


@dataclass(frozen=True)
class StageCost:
    """One stage: units needed and reused, seconds one unit takes on one worker, and where that number comes from.

    ``unit_bytes`` is the size of one artefact on disk (0 when it is not known).
    """

    stage: str
    needed: int
    reused: int
    unit_seconds: float
    basis: Basis
    unit_bytes: int

    @property
    def missing(self) -> int:
        """Units that have to be computed."""
        return self.needed - self.reused

    @property
    def seconds(self) -> float:
        """Seconds of work, summed over workers."""
        return self.missing * self.unit_seconds

    @property
    def bytes(self) -> int:
        """Bytes that the missing artefacts take."""
        return self.missing * self.unit_bytes


@dataclass(frozen=True)
class Rehearsal:
    """A choice among ``settings`` of a sweep, of which ``own`` is the plan's.

    First come the ``jobs`` of the design that ``kind`` makes of each plan, ``rehearsed``.
    """

    sweep: str
    settings: Settings
    own: str
    kind: Kind
    rehearsed: Callable[[BasePlan], BasePlan]
    jobs: Callable[[Design], Sequence[Job]]


@dataclass
class Bill:
    """The work of plans on one data set: by stage the jobs of all, each with the probe of its plan, by key.

    ``present``: the data are here, not stand-ins of their size. ``designs``: those of the settings that are audited
    whole, by name.
    """

    kind: Kind
    data: Dataset
    device: str
    store: Store
    timings: Timings
    present: bool = True
    work: dict[str, dict[str, tuple[Job, Probe]]] = field(default_factory=dict)
    designs: dict[str, Design] = field(default_factory=dict)

    def add(
        self, plan: BasePlan, wanted: Callable[[Design], Sequence[Job]], kind: Kind | None = None
    ) -> tuple[Design, Sequence[Job]]:
        """Add the jobs that are ``wanted`` of a plan's design, by ``kind`` or the bill's; return design and jobs.

        Raises BadInput for a target that cannot answer about the points that are asked about.
        """
        by = kind or self.kind
        design = by.lay_out(plan, self.data, self.device, self.store)
        jobs = wanted(design.priced())
        if self.present and kind is None:
            check_target_of(design)
        probe = by.probe(plan, timed_on(self.device), self.timings)
        for job in (*design.first_jobs(), *jobs):
            self.work.setdefault(job.stage, {}).setdefault(job.key, (job, probe))
        return design, jobs

    def published(self, which: Which) -> list[Published]:
        """Return the models that MLflow gets, also before points are ranked; none of kinds that have none to give."""
        if which == "none" or self.kind.published is nothing_published:
            return []
        return listed(which, {name: self.kind.published(design.priced()) for name, design in self.designs.items()})

    def stages(self) -> tuple[StageCost, ...]:
        """Return what each stage costs, in the order of the kind."""
        past = PastWork(self.store, {key: job.document for key, (job, _) in self.work.get("train", {}).items()})
        stated = self.timings.images_per_second is not None
        found = (stage.name for stage in self.kind.stages if stage.name in self.work)
        return tuple(stage_cost(name, self.work[name], past, stated) for name in found)


def running(bill: Bill, plan: BasePlan, sweep: Sweep | None) -> Audited:
    """Add the settings of ``sweep``, or those of ``plan``, to a bill; return them."""
    tuning = bill.kind.tuning if sweep and sweep.measures == "utility" else None
    audited: Audited = {}
    settings = distinct(sweep.settings(plan.resolved()), plan)[0] if sweep else plan.settings()
    for name, overrides in settings.items():
        changed = plan.changed(overrides) if overrides else plan
        design, jobs = bill.add(changed, lambda design: tuning.jobs(design.jobs()) if tuning else design.jobs())
        audited[name] = changed, jobs
        if not tuning:
            bill.designs[name] = design
    return audited


def choosing(bill: Bill, plan: BasePlan, rehearsal: Rehearsal) -> Audited:
    """Add a choice to a bill: the rehearsal of all settings, and the audit of the plan's own and of one other.

    Which one wins is not known: the dearest one is priced. Returns those two.
    """
    plans = {name: plan.changed(changes) if changes else plan for name, changes in rehearsal.settings.items()}
    weights = {
        name: bill.add(rehearsal.rehearsed(each), rehearsal.jobs, rehearsal.kind)[0].weight
        for name, each in plans.items()
    }
    others = [name for name in plans if name != rehearsal.own]
    both = (rehearsal.own, *([max(others, key=lambda name: weights[name])] if others else []))
    audited: Audited = {}
    for name in both:
        bill.designs[name], jobs = bill.add(plans[name], lambda design: design.jobs())
        audited[name] = plans[name], jobs
    return audited


def stage_cost(stage: str, work: Work, past: PastWork, stated: bool) -> StageCost:
    """Return the cost of one stage; ``work``: its jobs by key, each with the probe of its plan.

    ``stated``: speed was stated, so that what the store's artefacts took on this machine says nothing.
    """
    present = past.store.keys(stage)
    missing = [unit for key, unit in work.items() if key not in present]
    reused = len(work) - len(missing)
    if not missing:
        return StageCost(stage, len(work), reused, 0.0, "the store", 0)
    known = {} if stated else past.paces(stage)
    seconds, sizes, guessed = [], [], 0
    for job, probe in missing:
        alike = known.get(past.kind(job.document))
        guessed += alike is None
        seconds.append(alike.seconds if alike else probe.seconds(job))
        sizes.append(alike.size if alike else probe.size(job))
    basis: Basis = "the store" if not guessed else "a probe" if guessed == len(missing) else "the store, a probe"
    if stated:
        basis = "as stated"
    return StageCost(stage, len(work), reused, statistics.fmean(seconds), basis, round(statistics.fmean(sizes)))


def timed_on(device: str) -> str:
    """Return where training steps are timed: on this machine's CPU where the GPU is elsewhere (far too high)."""
    import torch

    return device if device == "cpu" or torch.cuda.is_available() else "cpu"

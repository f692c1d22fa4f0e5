"""What a plan or a sweep would cost: models to train or reuse, time, disk and label queries, before anything runs."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from actors.cluster import size_workers
from audits.data.catalogue import describe
from audits.data.dataset import Dataset
from orchestrator.engine.cost.choice import wall_seconds
from orchestrator.engine.cost.history import PastWork
from orchestrator.engine.data import data_of, gpus_here, on_this_machine
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Kind, Probe
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.queries import Queries
from orchestrator.engine.store.store import Store, default_store_uri
from orchestrator.engine.timings import Timings
from tune_spaces.registry import Sweep

Basis = Literal["the store", "a probe", "the store, a probe", "as stated"]
Work = Mapping[str, tuple[Job, Probe]]


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
class Cost:
    """The estimate; ``seconds`` is wall time with ``workers`` workers, ``gpu_hours`` is None without a GPU.

    ``sweep`` names the sweep, if it is one, and ``settings`` counts its settings. ``images_per_second``: the throughput
    of training that was stated, if time was not measured.
    """

    stages: tuple[StageCost, ...]
    queries: tuple[Queries, ...]
    workers: int
    device: str
    store: str
    data_present: bool = True
    sweep: str = ""
    settings: int = 1
    images_per_second: float | None = None

    @property
    def seconds(self) -> float:
        """Wall seconds: work over workers, and the start of the workers if there is any work for them."""
        return wall_seconds(sum(stage.seconds for stage in self.stages), self.workers)

    @property
    def worker_hours(self) -> float:
        """Hours of work, summed over workers."""
        return sum(stage.seconds for stage in self.stages) / 3600

    @property
    def gpu_hours(self) -> float | None:
        """Hours of GPU work, or None when the plan runs on the CPU."""
        return self.worker_hours if self.device.startswith("cuda") else None

    @property
    def bytes(self) -> int:
        """Bytes that the run adds to the store."""
        return sum(stage.bytes for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain values (seconds, bytes, counts)."""
        stages = [
            {**dataclasses.asdict(stage), "missing": stage.missing, "seconds": round(stage.seconds, 3)}
            for stage in self.stages
        ]
        return {
            "schema": "orch.cost/1",
            "sweep": self.sweep,
            "settings": self.settings,
            "stages": stages,
            "queries": [dataclasses.asdict(entry) for entry in self.queries],
            "workers": self.workers,
            "device": self.device,
            "store": self.store,
            "data_present": self.data_present,
            "seconds": round(self.seconds, 3),
            "gpu_hours": self.gpu_hours,
            "images_per_second": self.images_per_second,
            "bytes": self.bytes,
        }


def estimate(kind: Kind, plan: BasePlan, sweep: Sweep | None = None, images_per_second: float | None = None) -> Cost:
    """Return what ``plan``, or ``sweep`` around it, would cost with the store as it is now. Starts no workers.

    A job takes what jobs of its kind took (same model, recipe, settings, platform), else what a few training steps on
    random data say, scaled; with ``images_per_second``, the throughput of training of one worker wherever that is, all
    that is missing is priced by it. What settings of a sweep share counts once. Raises BadInput when a setting is
    impossible.
    """
    store = Store(plan.compute.store or default_store_uri())
    present = describe(plan.data.name, plan.data.root).present
    data = data_of(plan.data.name, plan.data.root, plan.data.groups) if present else stand_in(plan)
    plan, device = on_this_machine(plan)
    changes = sweep.settings(plan.resolved()) if sweep else plan.settings()
    tuning = kind.tuning if sweep and sweep.measures == "utility" else None
    settings: list[tuple[BasePlan, Sequence[Job]]] = []
    work: dict[str, dict[str, tuple[Job, Probe]]] = {}
    timings = Timings(images_per_second)
    for overrides in changes.values():
        changed = plan.changed(overrides) if overrides else plan
        design = kind.lay_out(changed, data, device, store)
        jobs = design.priced_jobs()
        wanted = tuning.jobs(jobs) if tuning else jobs
        probe = kind.probe(changed, timed_on(device), timings)
        for job in (*design.first_jobs(), *wanted):
            work.setdefault(job.stage, {}).setdefault(job.key, (job, probe))
        settings.append((changed, wanted))
    past = PastWork(store, {key: job.document for key, (job, _) in work.get("train", {}).items()})
    stated = images_per_second is not None
    stages = tuple(
        stage_cost(stage.name, work[stage.name], past, stated) for stage in kind.stages if stage.name in work
    )
    return Cost(
        stages,
        tuple(kind.queries(settings)),
        stated_workers(plan) if stated else worker_count(plan, device, sum(stage.seconds for stage in stages)),
        device,
        store.uri,
        present,
        sweep.name if sweep else "",
        len(settings),
        images_per_second,
    )


def timed_on(device: str) -> str:
    """Return where training steps are timed: on this machine's CPU where the GPU is elsewhere (far too high)."""
    import torch

    return device if device == "cpu" or torch.cuda.is_available() else "cpu"


def stand_in(plan: BasePlan) -> Dataset:
    """Return a data set of the size of the plan's, with equal classes and no content: for counting alone."""
    import numpy as np

    facts = describe(plan.data.name, plan.data.root)
    inputs = np.broadcast_to(np.zeros((), np.uint8), (facts.points, *facts.shape))
    labels = np.arange(facts.points, dtype=np.int64) % len(facts.classes)
    return Dataset(plan.data.name, inputs, labels, facts.classes, facts.value_range, fingerprint="absent")


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


def stated_workers(plan: BasePlan) -> int:
    """Return how many workers of a stated speed there are: the plan's number, or one, as the price is of elsewhere."""
    return plan.compute.workers if isinstance(plan.compute.workers, int) else 1


def worker_count(plan: BasePlan, device: str, work: float) -> int:
    """Return how many workers the plan gets on this machine for so many seconds of ``work``.

    On a cluster it is the plan's number, or one: nobody knows how many will come.
    """
    if plan.compute.address is not None:
        return plan.compute.workers if isinstance(plan.compute.workers, int) else 1
    most = size_workers(plan.compute.workers, gpus_here(plan, device), cpus=plan.compute.cpus_per_worker)
    if plan.compute.workers != "auto" or device != "cpu":
        return most
    return most if wall_seconds(work, most) < work else 0

"""What a plan or a sweep would cost: models to train or reuse, time, disk and label queries, before anything runs."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.jobs import Job, Schedule
    from orchestrator.past_work import PastWork
    from orchestrator.plan_base import BasePlan
    from orchestrator.probe import Probe
    from orchestrator.schedule import AnyScheduler
    from tune_spaces.registry import Sweep

Basis = Literal["the store", "a probe", "the store, a probe"]
Work = Mapping[str, tuple["Job", "Probe"]]
START_SECONDS = 20.0  # of worker processes that import torch and join one training run


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
class Queries:
    """Queries an attack puts to a target under one unlearning method, and to all targets under all methods.

    In a sweep both are sums over the settings: answers that several settings read are asked for once.
    """

    attack: str
    access: str
    per_target: int
    total: int


@dataclass(frozen=True)
class Cost:
    """The estimate; ``seconds`` is wall time with ``workers`` workers, ``gpu_hours`` is None without a GPU.

    ``sweep`` names the sweep, if it is one, and ``settings`` counts its settings.
    """

    stages: tuple[StageCost, ...]
    queries: tuple[Queries, ...]
    workers: int
    device: str
    store: str
    data_present: bool = True
    sweep: str = ""
    settings: int = 1

    @property
    def seconds(self) -> float:
        """Wall seconds: work over workers, and the start of the workers if there is any work for them."""
        work = sum(stage.seconds for stage in self.stages)
        start = START_SECONDS if self.workers and any(stage.missing for stage in self.stages) else 0.0
        return work / max(1, self.workers) + start

    @property
    def gpu_hours(self) -> float | None:
        """Hours of GPU work, or None when the plan runs on the CPU."""
        return sum(stage.seconds for stage in self.stages) / 3600 if self.device.startswith("cuda") else None

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
            "bytes": self.bytes,
        }


def estimate(plan: BasePlan, sweep: Sweep | None = None) -> Cost:
    """Return what ``plan``, or ``sweep`` around it, would cost with the store as it is now. Starts no workers.

    A job takes what jobs of its kind took (same model, recipe, settings, platform), else what a few training steps on
    random data say, scaled. What settings of a sweep share counts once. Raises BadInput when a setting is impossible.
    """
    from audits.data.catalogue import describe
    from orchestrator.jobs import STAGES
    from orchestrator.kinds import audit_kind
    from orchestrator.past_work import PastWork
    from orchestrator.probe import Timings, probe_of
    from orchestrator.schedule import data_of, device_of, open_scheduler
    from orchestrator.store import Store, default_store_uri

    store = Store(plan.compute.store or default_store_uri())
    present = describe(plan.data.name, plan.data.root).present
    data, device = data_of(plan.data.name, plan.data.root) if present else stand_in(plan), device_of(plan)
    changes = sweep.settings(plan.resolved()) if sweep else plan.settings()
    settings: list[tuple[BasePlan, Schedule]] = []
    work: dict[str, dict[str, tuple[Job, Probe]]] = {}
    timings: Timings = {}
    for overrides in changes.values():
        changed = plan.changed(overrides) if overrides else plan
        jobs, ranking = jobs_of(open_scheduler(changed, store, data, device))
        wanted = jobs.of_targets() if sweep and sweep.measures == "utility" else jobs
        probe = probe_of(changed, device, timings)
        for job in (*ranking, *wanted.everything):
            work.setdefault(job.stage, {}).setdefault(job.key, (job, probe))
        settings.append((changed, wanted))
    past = PastWork(store, {key: job.document for key, (job, _) in work.get("train", {}).items()})
    return Cost(
        tuple(stage_cost(stage, work[stage], past) for stage in STAGES if stage in work),
        tuple(audit_kind(plan.kind).queries(settings)),
        worker_count(plan),
        device,
        store.uri,
        present,
        sweep.name if sweep else "",
        len(settings),
    )


def stand_in(plan: BasePlan) -> Dataset:
    """Return a data set of the size of the plan's, with equal classes and no content: for counting alone."""
    import numpy as np

    from audits.data.catalogue import describe
    from audits.data.dataset import Dataset

    facts = describe(plan.data.name, plan.data.root)
    inputs = np.broadcast_to(np.zeros((), np.uint8), (facts.points, *facts.shape))
    labels = np.arange(facts.points, dtype=np.int64) % len(facts.classes)
    return Dataset(plan.data.name, inputs, labels, facts.classes, facts.value_range, fingerprint="absent")


def jobs_of(scheduler: AnyScheduler) -> tuple[Schedule, tuple[Job, ...]]:
    """Return the jobs of a plan and those that rank its points.

    Before these are done nobody knows which points are audited: random ones stand in, in a data set of another
    fingerprint, so that no job passes for one of a plan that audits random points.
    """
    from orchestrator.schedule import Scheduler

    ranking = scheduler.ranking_jobs()
    if isinstance(scheduler, Scheduler) and ranking and scheduler.ranking() is None:
        unranked = dataclasses.replace(scheduler.data, fingerprint=f"ranked by {ranking[-1].key}")
        plan = scheduler.plan.changed({"split.points": "random"})
        return Scheduler(plan, unranked, scheduler.device).schedule(), ranking
    return scheduler.schedule(), ranking


def stage_cost(stage: str, work: Work, past: PastWork) -> StageCost:
    """Return the cost of one stage; ``work``: its jobs by key, each with the probe of its plan."""
    present = past.store.keys(stage)
    missing = [unit for key, unit in work.items() if key not in present]
    reused = len(work) - len(missing)
    if not missing:
        return StageCost(stage, len(work), reused, 0.0, "the store", 0)
    known = past.paces(stage)
    seconds, sizes, guessed = [], [], 0
    for job, probe in missing:
        alike = known.get(past.kind(job.document))
        guessed += alike is None
        seconds.append(alike.seconds if alike else probe.seconds(job))
        sizes.append(alike.size if alike else probe.size(job))
    basis: Basis = "the store" if not guessed else "a probe" if guessed == len(missing) else "the store, a probe"
    return StageCost(stage, len(work), reused, statistics.fmean(seconds), basis, round(statistics.fmean(sizes)))


def label_queries(settings: Iterable[tuple[BasePlan, Schedule]]) -> Iterator[Queries]:
    """Yield, per attack, the queries of all ``settings``; evidence that several of them read is gathered once."""
    from audits.attacks import ATTACKS

    asked: dict[str, dict[str, tuple[tuple[str, ...], int]]] = {}  # attack → key of a search → its targets, queries
    for plan, jobs in settings:
        each = {job.kind: queries_per_candidate(plan, job.kind) for job in jobs.search_units}
        for attack in plan.audit.attacks:
            found = asked.setdefault(attack, {})
            for job in jobs.search_units:
                if job.kind in ATTACKS[attack].reads:
                    found[job.key] = (tuple(job.document["targets"]), job.document["count"] * each[job.kind])
    for attack, searches in asked.items():
        total: Counter[tuple[str, ...]] = Counter()
        for targets, queries in searches.values():
            total[targets] += queries
        if total:
            per_target = max(queries // len(targets) for targets, queries in total.items())
            yield Queries(attack, ATTACKS[attack].access, per_target, total.total())


def queries_per_candidate(plan: BasePlan, kind: str) -> int:
    """Return the queries about one candidate that gathering a kind of evidence puts to a target."""
    from audits.evidence import KINDS, SearchSettings

    if "population" in KINDS[kind].settings:  # the same for all candidates of a target, so split between them
        candidates = plan.split.candidates
        return -(-int(plan.audit.population) // int(candidates.forget + candidates.unseen + candidates.retained))
    settings = SearchSettings(**plan.audit.search.model_dump(exclude={"shadows"}))
    return int(KINDS[kind].queries(settings, plan.audit.query_budget))


def worker_count(plan: BasePlan) -> int:
    """Return how many workers the plan gets on this machine."""
    from actors.cluster import size_workers

    return size_workers(plan.compute.workers, plan.compute.gpus_per_worker)

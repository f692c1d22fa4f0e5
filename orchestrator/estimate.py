"""What a plan would cost: models to train or reuse, time, disk and label queries, before anything runs."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.jobs import Job, Schedule
    from orchestrator.plan import Plan
    from orchestrator.probe import Probe
    from orchestrator.store import Artefact, Store

Basis = Literal["the store", "a probe", "the store, a probe"]
START_SECONDS = 20.0  # of worker processes that import torch and join one training run
# Fields of an artefact's document that decide how long it takes to make.
DECIDES_TIME = (
    "model",
    "recipe",
    "count",
    "method",
    "settings",
    "kind",
    "search",
    "budget",
    "chunk",
    "attacks",
    "platform",
)


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
    """Queries an attack puts to each target, and to all targets under all unlearning methods."""

    attack: str
    access: str
    per_target: int
    total: int


@dataclass(frozen=True)
class Cost:
    """The estimate; ``seconds`` is wall time with ``workers`` workers, ``gpu_hours`` is None without a GPU."""

    stages: tuple[StageCost, ...]
    queries: tuple[Queries, ...]
    workers: int
    device: str
    store: str
    data_present: bool = True

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


def estimate(plan: Plan) -> Cost:
    """Return what ``plan`` would cost with the store as it is now. Starts no workers.

    A job takes what jobs of its kind took (same model, recipe, settings, platform), else what a few training steps on
    random data say, scaled.
    """
    from audits.data.catalogue import describe
    from orchestrator.probe import Probe
    from orchestrator.schedule import device_of
    from orchestrator.store import Store, default_store_uri

    store = Store(plan.compute.store or default_store_uri())
    present = describe(plan.data.name, plan.data.root).present
    jobs, ranking = jobs_of(plan, store, None if present else stand_in(plan))
    device = device_of(plan)
    probe = Probe(plan, device)
    trained = {job.key: job.document for job in (*ranking[:-1], *jobs.train_jobs)}
    stages = tuple(
        stage_cost(store, stage, work, trained, probe)
        for stage, work in (
            ("train", (*ranking[:-1], *jobs.train_jobs)),
            ("rank", ranking[-1:]),
            ("unlearn", jobs.unlearn_jobs),
            ("utility", jobs.utility_units),
            ("trace", jobs.trace_units),
            ("search", jobs.search_units),
            ("score", jobs.score_units),
            ("radii", jobs.radius_units),
        )
        if work or stage not in ("rank", "trace", "radii")
    )
    return Cost(stages, tuple(label_queries(plan)), worker_count(plan), device, store.uri, present)


def stand_in(plan: Plan) -> Dataset:
    """Return a data set of the size of the plan's, with equal classes and no content: for counting alone."""
    import numpy as np

    from audits.data.catalogue import describe
    from audits.data.dataset import Dataset

    facts = describe(plan.data.name, plan.data.root)
    inputs = np.broadcast_to(np.zeros((), np.uint8), (facts.points, *facts.shape))
    labels = np.arange(facts.points, dtype=np.int64) % len(facts.classes)
    return Dataset(plan.data.name, inputs, labels, facts.classes, facts.value_range, fingerprint="absent")


def jobs_of(plan: Plan, store: Store, data: Dataset | None = None) -> tuple[Schedule, tuple[Job, ...]]:
    """Return the jobs of a plan and those that rank its points; before these are done, random points stand in."""
    from orchestrator.schedule import open_scheduler

    scheduler = open_scheduler(plan, store, data)
    ranking = scheduler.ranking_jobs()
    if ranking and scheduler.ranking() is None:
        return open_scheduler(plan.changed({"split.points": "random"}), None, data).schedule(), ranking
    return scheduler.schedule(), ranking


def stage_cost(
    store: Store, stage: str, jobs: Sequence[Job], trained: Mapping[str, Mapping[str, Any]], probe: Probe
) -> StageCost:
    """Return the cost of one stage; ``trained``: documents of the plan's training jobs by key."""
    present = store.keys(stage)
    unique = {job.key: job for job in jobs}
    missing = [job for key, job in unique.items() if key not in present]
    if not missing:
        return StageCost(stage, len(unique), len(unique), 0.0, "the store", 0)
    past = past_work(store, stage, trained)
    seconds, sizes, guessed = [], [], 0
    for job in missing:
        alike = past.get(kind(job.document, trained))
        guessed += alike is None
        seconds.append(statistics.fmean(work.seconds for work in alike) if alike else probe.seconds(job))
        sizes.append(statistics.fmean(work.size for work in alike) if alike else probe.size(job))
    basis: Basis = "the store" if not guessed else "a probe" if guessed == len(missing) else "the store, a probe"
    reused = len(unique) - len(missing)
    return StageCost(stage, len(unique), reused, statistics.fmean(seconds), basis, round(statistics.fmean(sizes)))


def past_work(store: Store, stage: str, trained: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Artefact]]:
    """Return the artefacts of a stage by kind; damaged ones are passed over."""
    documents = dict(trained)
    if stage in ("trace", "search", "utility"):
        kept = store.artefacts("train", on_damage=lambda *_: None)
        documents.update((artefact.key, artefact.document) for artefact in kept)
    found: dict[str, list[Artefact]] = {}
    for artefact in store.artefacts(stage, on_damage=lambda *_: None):
        if artefact.seconds > 0:
            found.setdefault(kind(artefact.document, documents), []).append(artefact)
    return found


def kind(document: Mapping[str, Any], trained: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the part of a document that decides how long the work takes, as text."""
    found = {field: document[field] for field in DECIDES_TIME if field in document}
    groups = [group for role in document.get("original", {}).values() for group in role]
    key = document.get("trained") or next(iter(groups[0] if groups else []), "")
    if key:
        found["shadows"] = [len(group) for group in groups]
        found["trained"] = {field: trained.get(key, {}).get(field) for field in ("model", "recipe")}
    return json.dumps(found, sort_keys=True)


def label_queries(plan: Plan) -> Iterable[Queries]:
    """Yield, per attack, the queries that one target and all targets under all unlearning methods get."""
    from audits.attacks import ATTACKS
    from audits.evidence import KINDS, SearchSettings

    candidates = plan.split.candidates
    asked = candidates.forget + candidates.unseen + candidates.retained
    settings = SearchSettings(**plan.audit.search.model_dump(exclude={"shadows"}))
    targets = plan.split.targets * len(plan.unlearning)
    shared = -(-plan.audit.population // asked)  # population queries, split between the candidates of a target
    for attack in plan.audit.attacks:
        kinds = [KINDS[name] for name in ATTACKS[attack].reads]
        per_target = asked * sum(
            shared if "population" in kind.settings else kind.queries(settings, plan.audit.query_budget)
            for kind in kinds
        )
        yield Queries(attack, ATTACKS[attack].access, per_target, per_target * targets)


def worker_count(plan: Plan) -> int:
    """Return how many workers the plan gets on this machine."""
    from actors.cluster import size_workers

    return size_workers(plan.compute.workers, plan.compute.gpus_per_worker)

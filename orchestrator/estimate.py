"""What a plan would cost: models to train or reuse, time, disk and label queries, before anything runs."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from orchestrator.plan import Plan
    from orchestrator.store import Artefact, Store

Basis = Literal["the store", "a probe"]
ALONG_A_WALK = ("apollo", "apollo_offline", "apollo_paper", "random_directions")  # one query a step and direction
START_SECONDS = 20.0  # of worker processes that import torch and join one training run
# Fields of an artefact's document that decide how long it takes to make.
DECIDES_TIME = ("recipe", "model", "architecture", "method", "unlearner", "settings", "search", "attack")


class ScheduledJob(Protocol):
    """What is read of a job of ``orchestrator.pipeline.schedule``: its key and, if it has one, its document."""

    @property
    def key(self) -> str:
        """Key of the artefact that the job makes."""


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
            "seconds": round(self.seconds, 3),
            "gpu_hours": self.gpu_hours,
            "bytes": self.bytes,
        }


def estimate(plan: Plan) -> Cost:
    """Return what ``plan`` would cost with the store as it is now. Starts no workers.

    A stage takes what it took when an artefact of the same kind was made (same model, recipe, settings), else what
    a few training steps on random data say, scaled to the stage.
    """
    from orchestrator.pipeline import schedule
    from orchestrator.probe import Probe
    from orchestrator.store import Store, default_store_uri

    store = Store(plan.compute.store or default_store_uri())
    jobs = schedule(plan)
    device = chosen_device(plan)
    probe = Probe(plan, device)
    stages = (
        stage_cost(store, "train", jobs.train_jobs, probe.train_seconds, probe.model_bytes),
        stage_cost(store, "unlearn", jobs.unlearn_jobs, probe.unlearn_seconds, probe.model_bytes),
        stage_cost(store, "search", jobs.search_units, probe.search_seconds, lambda: 0),
        stage_cost(store, "score", jobs.score_units, probe.score_seconds, lambda: 0),
    )
    return Cost(stages, tuple(label_queries(plan)), worker_count(plan), device, store.uri)


def stage_cost(
    store: Store,
    stage: str,
    jobs: Sequence[ScheduledJob],
    probe: Callable[[], float],
    model_bytes: Callable[[], int],
) -> StageCost:
    """Return the cost of one stage; the probe runs only when the store knows no artefact of the kind."""
    present = store.keys(stage)
    unique = {job.key: job for job in jobs}
    reused = sum(key in present for key in unique)
    if reused == len(unique):
        return StageCost(stage, len(unique), reused, 0.0, "the store", 0)
    missing = [job for key, job in unique.items() if key not in present]
    past = alike(store.artefacts(stage, on_damage=lambda *_: None), missing)
    if past:
        seconds = statistics.median(artefact.seconds for artefact in past)
        size = round(statistics.median(artefact.size for artefact in past))
        return StageCost(stage, len(unique), reused, seconds, "the store", size)
    return StageCost(stage, len(unique), reused, probe(), "a probe", model_bytes())


def alike(artefacts: Iterable[Artefact], jobs: Sequence[ScheduledJob]) -> list[Artefact]:
    """Return the artefacts of the same kind as the jobs: equal in every field that decides how long one takes."""
    kinds = [kind(document) for job in jobs if (document := getattr(job, "document", None))]
    return [artefact for artefact in artefacts if artefact.seconds > 0 and kind(artefact.document) in kinds]


def kind(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an artefact's document that decides how long it takes to make."""
    return {field: document[field] for field in DECIDES_TIME if field in document}


def label_queries(plan: Plan) -> Iterable[Queries]:
    """Yield, per attack, the queries that one target and all targets under all unlearning methods get."""
    from audits.attacks import ATTACKS

    asked = plan.split.candidates.forget + plan.split.candidates.unseen
    steps = 2 * plan.audit.search.steps  # both directions
    targets = plan.split.targets * len(plan.unlearning)
    for attack in plan.audit.attacks:
        per_target = asked * (1 + steps if attack in ALONG_A_WALK else 1)
        yield Queries(attack, ATTACKS[attack].access, per_target, per_target * targets)


def worker_count(plan: Plan) -> int:
    """Return how many workers the plan gets on this machine."""
    from actors.cluster import size_workers

    return size_workers(plan.compute.workers, plan.compute.gpus_per_worker)


def chosen_device(plan: Plan) -> str:
    """Return the device that the plan gets on this machine."""
    if plan.compute.device != "auto":
        return plan.compute.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"

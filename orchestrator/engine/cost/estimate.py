"""The cost of a plan, a sweep or a choice, before anything runs: models to make or reuse, time, disk, queries."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from actors.cluster import size_workers
from audits.data.catalogue import describe
from audits.data.dataset import Dataset
from orchestrator.engine.cost.bill import Bill, Rehearsal, StageCost, choosing, running
from orchestrator.engine.cost.choice import wall_seconds
from orchestrator.engine.data import data_of, gpus_here, on_this_machine
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.published import bytes_of
from orchestrator.engine.queries import Queries
from orchestrator.engine.store.store import Store, default_store_uri
from orchestrator.engine.timings import Timings
from tune_spaces.registry import Sweep


@dataclass(frozen=True)
class Cost:
    """The estimate; ``seconds`` is wall time with ``workers`` workers, ``gpu_hours`` is None without a GPU.

    ``sweep`` names the sweep, if it is one, and ``settings`` counts its settings. ``audited`` names those of which the
    targets are asked where one is chosen (``orch tune``), () for all. ``images_per_second``: the throughput of training
    that was stated, if time was not measured. ``workers_per_model``: so many of the workers share the work of a model.
    ``logged_models`` and ``logged_bytes``: what ``--log-models`` gives to MLflow, if that has none of it.
    """

    stages: tuple[StageCost, ...]
    queries: tuple[Queries, ...]
    workers: int
    device: str
    store: str
    data_present: bool = True
    sweep: str = ""
    settings: int = 1
    audited: tuple[str, ...] = ()
    images_per_second: float | None = None
    workers_per_model: int = 1
    logged_models: int = 0
    logged_bytes: int = 0

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
            "audited": list(self.audited),
            "stages": stages,
            "queries": [dataclasses.asdict(entry) for entry in self.queries],
            "workers": self.workers,
            "workers_per_model": self.workers_per_model,
            "device": self.device,
            "store": self.store,
            "data_present": self.data_present,
            "seconds": round(self.seconds, 3),
            "gpu_hours": self.gpu_hours,
            "images_per_second": self.images_per_second,
            "bytes": self.bytes,
            "logged_models": self.logged_models,
            "logged_bytes": self.logged_bytes,
        }


def estimate(
    kind: Kind,
    plan: BasePlan,
    sweep: Sweep | None = None,
    images_per_second: float | None = None,
    rehearsal: Rehearsal | None = None,
) -> Cost:
    """Return what a plan, a sweep around it, or a choice after its ``rehearsal`` would cost, the store being as it is.

    Starts no workers. A job takes what jobs of its kind took (same model, recipe, settings, platform), else what a few
    training steps on random data say, scaled; with ``images_per_second``, the throughput of training of one worker
    wherever that is, all that is missing is priced by it. What settings share counts once. Raises BadInput when a
    setting is impossible.
    """
    present = describe(plan.data.name, plan.data.root).present
    data = data_of(plan.data.name, plan.data.root, plan.data.groups) if present else stand_in(plan)
    plan, device = on_this_machine(plan)
    store = Store(plan.compute.store or default_store_uri())
    bill = Bill(kind, data, device, store, Timings(images_per_second), present)
    audited = choosing(bill, plan, rehearsal) if rehearsal else running(bill, plan, sweep)
    stages = bill.stages()
    work = sum(stage.seconds for stage in stages)
    logged = bill.published(plan.tracking.log_models)
    return Cost(
        stages,
        tuple(kind.queries(list(audited.values()))),
        worker_count(plan, device, work) if images_per_second is None else stated_workers(plan),
        device,
        store.uri,
        present,
        rehearsal.sweep if rehearsal else sweep.name if sweep else "",
        len(rehearsal.settings) if rehearsal else len(audited),
        tuple(audited) if rehearsal else (),
        images_per_second,
        plan.compute.workers_per_model,
        len(logged),
        bytes_of(logged),
    )


def stand_in(plan: BasePlan) -> Dataset:
    """Return a data set of the size of the plan's, with equal classes and no content: for counting alone."""
    import numpy as np

    facts = describe(plan.data.name, plan.data.root)
    inputs = np.broadcast_to(np.zeros((), np.uint8), (facts.points, *facts.shape))
    labels = np.arange(facts.points, dtype=np.int64) % len(facts.classes)
    return Dataset(plan.data.name, inputs, labels, facts.classes, facts.value_range, fingerprint="absent")


def stated_workers(plan: BasePlan) -> int:
    """Return how many workers of a stated speed there are: the plan's number, or those of one model."""
    return plan.compute.workers if isinstance(plan.compute.workers, int) else plan.compute.workers_per_model


def worker_count(plan: BasePlan, device: str, work: float) -> int:
    """Return how many workers the plan gets on this machine for so many seconds of ``work``.

    On a cluster it is the plan's number, or one: nobody knows how many will come. Workers of one model come together.
    """
    if plan.compute.address is not None:
        return stated_workers(plan)
    team = plan.compute.workers_per_model
    most = size_workers(plan.compute.workers, gpus_here(plan, device), cpus=plan.compute.cpus_per_worker)
    if team > 1:
        return max(team, most // team * team)
    if plan.compute.workers != "auto" or device != "cpu":
        return most
    return most if wall_seconds(work, most) < work else 0

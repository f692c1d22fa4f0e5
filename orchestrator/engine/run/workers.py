"""The workers of a run: on what they compute, how many there are, what each holds, where Ray keeps its own files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from actors.cluster import size_workers
from actors.first_worker import first_worker
from actors.jobs import Engine, Workers
from audits.errors import BadInput
from orchestrator.engine.data import gpus_here, on_gpu, on_this_machine

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.run.console import Terminal
    from orchestrator.engine.store.store import Store

Done = Callable[["BasePlan", str], bool]
"""Whether the store has everything that a plan needs on a device."""

AS_THEY_COME = 10_000
"""Workers of a joined cluster with ``compute.workers: auto``: no more than there are jobs at a time."""


def hire(
    plan: BasePlan, store: Store, terminal: Terminal, done: Done, last_gpu: str = ""
) -> tuple[BasePlan, str, Workers]:
    """Return the plan (which names the GPU's model, if there is one), the device and the workers that it asks for.

    On a joined cluster the device is that of a first worker, which is asked for here, unless all is ``done`` on a CPU
    or on the GPU of the last run (``last_gpu``): no node is brought to say what is known.
    """
    compute = plan.compute
    team = compute.workers_per_model
    local = store.uri.removeprefix("file://")
    workers = Workers(
        count=team,
        cpus=compute.cpus_per_worker,
        threads=compute.threads,
        address=compute.address,
        engine=engine_of(plan),
        head=compute.head,
        storage=local + ".ray" if "://" not in local else os.path.abspath(".orch/ray"),
        per_model=team,
    )
    if compute.address is not None and compute.workers != 0:
        for known, device in without_asking(plan, last_gpu):
            if done(known, device):
                return known, device, workers
        plan, device, gpus = on_cluster(plan, replace(workers, count=1, per_model=1), terminal)
        count = AS_THEY_COME if compute.workers == "auto" else compute.workers
        return plan, device, replace(workers, count=count, gpus=gpus)
    plan, device = on_this_machine(plan)
    gpus = gpus_here(plan, device)
    if team > 1 and 0 < gpus < 1:
        raise BadInput(
            f"compute.workers_per_model is {team}, whose workers need a GPU each, but compute.workers is "
            f"{compute.workers}, more than this machine has; ask for fewer"
        )
    count = size_workers(compute.workers, gpus, cpus=compute.cpus_per_worker) // team * team
    if team > 1 and not count:
        raise BadInput(
            f"compute.workers_per_model is {team}, but fewer workers with {replace(workers, gpus=gpus).size} fit on "
            f"this machine; ask for fewer or smaller ones, or give compute.workers: {team}, which then share its CPUs"
        )
    return plan, device, replace(workers, count=count, gpus=gpus, address=None)


def without_asking(plan: BasePlan, last_gpu: str) -> list[tuple[BasePlan, str]]:
    """Return what a plan on a cluster may come to, as far as it can be said without a worker: plans and devices."""
    device, gpu = plan.compute.device, plan.compute.gpu or last_gpu
    found = [(plan, "cpu")] if device in ("auto", "cpu") else []
    return found + ([(on_gpu(plan, gpu), "cuda")] if gpu and device != "cpu" else [])


def engine_of(plan: BasePlan) -> Engine:
    """Return who hosts the workers: a Ray Train group on this machine and for teams, actors where nodes come and go."""
    if plan.compute.engine != "auto":
        return plan.compute.engine
    return "train" if plan.compute.address is None or plan.compute.workers_per_model > 1 else "actors"


def on_cluster(plan: BasePlan, workers: Workers, terminal: Terminal) -> tuple[BasePlan, str, float]:
    """Return the plan, the device and the GPUs of each worker on a joined cluster."""
    compute = plan.compute
    given = compute.gpus_per_worker
    if compute.device == "cpu" or given == 0:
        return plan, "cpu", 0.0 if given == "auto" else float(given)
    asked = 1.0 if given == "auto" and compute.device == "cuda" else given
    with terminal.quiet():
        found = first_worker(workers, asked, terminal.line)
    if found.device == "cuda":
        return on_gpu(plan, found.gpu), "cuda", found.gpus
    if compute.device == "cuda":
        raise BadInput("compute.device is cuda, but torch finds no GPU on a worker of the cluster that holds one")
    if found.gpus:
        terminal.line(
            f"warning: workers hold {found.gpus:g} GPU each, but torch finds none there: they compute on CPUs"
        )
    return plan, "cpu", found.gpus

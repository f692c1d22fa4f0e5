"""The workers of a run: on what they compute, how many there are, what each holds, where Ray keeps its own files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from actors.cluster import size_workers
from actors.first_worker import first_worker
from actors.jobs import Engine, Workers
from audits.errors import BadInput
from audits.owners import exposed_at
from audits.writing import make_folder, require_no_link
from orchestrator.engine.data import gpus_here, on_gpu, on_this_machine
from orchestrator.engine.store.trust import ALLOW

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
    or on the GPU of the last run (``last_gpu``): no node is brought to say what is known. Raises BadInput for what is
    not there or does not fit, and for a folder of Ray's files that others could change on a cluster.
    """
    compute = plan.compute
    team = compute.workers_per_model
    workers = Workers(
        count=team,
        cpus=compute.cpus_per_worker,
        threads=compute.threads,
        address=compute.address,
        engine=engine_of(plan),
        head=compute.head,
        storage=ray_folder(store),
        per_model=team,
    )
    if compute.address is not None and compute.workers != 0:
        workers = replace(workers, storage=shared_by_nodes(workers.storage, store))
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


def ray_folder(store: Store) -> str:
    """Return the folder of Ray's own files: beside a store on this machine, else in the folder ``.orch``.

    Raises BadInput where the latter is a link: whoever made the working folder may have made it.
    """
    local = store.uri.removeprefix("file://")
    if "://" not in local:
        return f"{local}.ray"
    try:
        require_no_link(Path(".orch"))
    except OSError as error:
        raise BadInput(f"Ray's own files lie in .orch/ray: {error}") from None
    return os.path.abspath(".orch/ray")


def shared_by_nodes(storage: str, store: Store) -> str:
    """Make the folder of Ray's own files for a run on a joined cluster, and return it.

    Beside a local store all nodes write and read it. With a bucket it is ``storage`` in the working folder, or, where
    others could change that (Ray makes /tmp/ray writable for all, where jobs work), one of the user's home. Raises
    BadInput where others could change it, unless the store beside it is one that the user shares with them.
    """
    root = storage.removesuffix(".ray")
    allowed = store.trust.allows(root) or store.trust.allows(storage)
    bucket = root == storage
    places = [storage, os.path.expanduser("~/.orch/ray")] if bucket and not allowed else [storage]
    exposed = None
    for place in map(Path, places):
        try:
            require_no_link(place)
            make_folder(place, private=not allowed)
            exposed = None if allowed else exposed_at(place.resolve())
        except OSError as error:
            raise BadInput(f"{place} cannot be the folder of Ray's files: {error}") from None
        if exposed is None:
            return str(place)
    way = "work in a folder of your own" if bucket else "use a store in a folder of your own (--store)"
    raise BadInput(
        f"{storage}: other users can change what Ray keeps there, because {exposed} belongs to one of them or can be "
        f"written by them; {way}, or, if you trust them, set {ALLOW}={root}"
    )


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

"""The first worker of a joined cluster: it is asked for like any other, and says what it computes on.

What a cluster may still grow to is written nowhere that Ray lets one read: whether there are GPUs to be had is found
out by asking for one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from actors.capacity import GROWING_PATIENCE_SECONDS, Autoscaler, describe, require_room
from actors.cluster import connect
from actors.jobs import Tell, Workers, WorkersLost

REACTION_SECONDS = 30.0
"""After this time an autoscaler (which looks every five seconds) that starts nothing has no such node to start."""
TELL_SECONDS = 30.0


@dataclass(frozen=True)
class Hardware:
    """What workers of a cluster compute on: "cpu" or "cuda", the GPU's model ("" on a CPU), GPUs held by each."""

    device: Literal["cpu", "cuda"]
    gpu: str
    gpus: float


def first_worker(workers: Workers, gpus: float | Literal["auto"], tell: Tell) -> Hardware:
    """Return what a worker finds; brings a node for it if need be.

    ``gpus`` a worker: a number, or "auto": one if the cluster has GPUs or its autoscaler starts nodes that do, else
    none. Raises BadInput when the cluster can never hold such a worker, WorkersLost when none comes for half an hour.
    """
    with connect(workers):
        if gpus != "auto":
            asked = replace(workers, gpus=gpus)
            require_room(asked)
            found = _ask(asked, tell, patience=GROWING_PATIENCE_SECONDS)
        else:
            found = _with_a_gpu(workers, tell)
    if found is None:
        return Hardware("cpu", "", 0.0)
    return Hardware("cuda" if found else "cpu", found, float(1.0 if gpus == "auto" else gpus))


def _with_a_gpu(workers: Workers, tell: Tell) -> str | None:
    """Return the GPU of a worker that has one, None when there is none to be had."""
    cluster = describe()
    asked = replace(workers, gpus=1.0)
    if cluster.usable(workers.head).room(asked.cpus, asked.gpus):
        return _ask(asked, tell, patience=GROWING_PATIENCE_SECONDS)
    if cluster.autoscaler is None:
        return None
    found = _ask(asked, tell, patience=REACTION_SECONDS)
    if found is None:
        tell("no GPU came to be started: workers compute on CPUs (compute.gpus_per_worker: auto)")
    return found


def _ask(workers: Workers, tell: Tell, patience: float) -> str | None:
    """Return the name of a worker's GPU ("" for none), or None when ``patience`` ends before anything was started."""
    import ray

    asked = ray.remote(_look).options(num_cpus=workers.cpus, num_gpus=workers.gpus, max_retries=-1).remote()
    begin = told = time.monotonic()
    last = begin
    while True:
        if ray.wait([asked], timeout=1.0)[0]:
            return str(ray.get(asked))
        now = time.monotonic()
        cluster = describe()
        if _stirs(cluster.autoscaler):
            last = now
        if now - told > TELL_SECONDS or told == begin:
            told = now
            tell(f"waiting for a worker with {workers.size}: {cluster.autoscaler or f'the cluster has {cluster}'}")
        if now - last > patience:
            ray.cancel(asked, force=True)
            if patience < GROWING_PATIENCE_SECONDS:
                return None
            raise WorkersLost(f"no worker with {workers.size} came for {now - begin:.0f} s: the cluster has {cluster}")


def _stirs(autoscaler: Autoscaler | None) -> bool:
    return autoscaler is not None and bool(autoscaler.starting)


def _look() -> str:
    """Return the model of the GPU that this process may use, "" if there is none (runs on a worker's place)."""
    import torch

    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else ""

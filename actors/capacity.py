"""What a cluster has, whether the workers fit on it, and noticing when nothing of it is left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from actors.jobs import Workers, WorkersLost
from audits.errors import BadInput

PATIENCE_SECONDS = 120.0
GROWING_PATIENCE_SECONDS = 1800.0
"""How long a cluster may have no room for any worker before the run gives up; longer if an autoscaler can add nodes."""


@dataclass(frozen=True)
class Node:
    """One machine of a cluster, or one kind of machine that it may still start (``name`` says which)."""

    name: str
    cpus: float
    gpus: float

    def room(self, cpus: float, gpus: float) -> int:
        """Return how many workers of this size fit."""
        fits = int(self.cpus / cpus + 1e-9)
        if gpus > 1:
            return min(fits, int(self.gpus // gpus))
        if gpus > 0:
            return min(fits, int(self.gpus) * int(1 / gpus + 1e-9))
        return fits


@dataclass(frozen=True)
class Cluster:
    """The machines that are alive, and what the autoscaler could reach in all (empty without one)."""

    nodes: tuple[Node, ...]
    most: Mapping[str, float]

    def room(self, cpus: float, gpus: float) -> int:
        """Return how many workers of this size fit on the machines that are alive."""
        return sum(node.room(cpus, gpus) for node in self.nodes)

    def __str__(self) -> str:
        cpus, gpus = sum(node.cpus for node in self.nodes), sum(node.gpus for node in self.nodes)
        text = f"{len(self.nodes)} node(s) with {cpus:g} CPUs and {gpus:g} GPUs"
        if self.most:
            text += f", growing to {self.most.get('CPU', 0):g} CPUs and {self.most.get('GPU', 0):g} GPUs"
        return text


def describe() -> Cluster:
    """Return what the connected cluster has (call inside ``connect``)."""
    import ray
    from ray._private.state import state

    nodes = tuple(
        Node(str(node["NodeManagerAddress"]), node["Resources"].get("CPU", 0.0), node["Resources"].get("GPU", 0.0))
        for node in ray.nodes()
        if node["Alive"]
    )
    return Cluster(nodes, state.get_max_resources_from_cluster_config() or {})


def require_room(workers: Workers, least: int | None = None) -> None:
    """Raise BadInput when the connected cluster cannot ever hold ``workers`` (others' use of it is not counted).

    ``least`` of them are enough when given: for work that goes on with the machines that are left.
    """
    least = workers.count if least is None else least
    cluster = describe()
    if cluster.room(workers.cpus, workers.gpus) >= least:
        return
    wanted = {"CPU": least * workers.cpus, "GPU": least * workers.gpus}
    if cluster.most and all(cluster.most.get(name, 0.0) >= amount for name, amount in wanted.items()):
        return
    raise BadInput(
        f"{workers.count} workers with {workers.cpus:g} CPUs and {workers.gpus:g} GPUs each do not fit: "
        f"{'the cluster at ' + workers.address if workers.address else 'this machine'} has {cluster}; "
        f"ask for fewer or smaller workers"
    )


class RoomWatch:
    """Notices that a cluster has had no room for a single worker for too long (all machines lost)."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._next_look = 0.0
        self._empty_since: float | None = None

    def check(self) -> None:
        """Raise WorkersLost when patience is over; looks at the cluster every few seconds only."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + 5.0
        cluster = describe()
        if cluster.room(self._workers.cpus, self._workers.gpus):
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now
        elif now - self._empty_since > (GROWING_PATIENCE_SECONDS if cluster.most else PATIENCE_SECONDS):
            raise WorkersLost(
                f"no room for a worker for {now - self._empty_since:.0f} s: the cluster is down to {cluster}; start "
                f"nodes and run the same command again{self._workers.see_log()}"
            )

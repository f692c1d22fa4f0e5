"""The capacity of a cluster: what it has, what its autoscaler does, whether workers fit, how long to wait for room."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.jobs import Workers, WorkersLost
from audits.errors import BadInput

PATIENCE_SECONDS = 120.0
GROWING_PATIENCE_SECONDS = 1800.0
"""How long a cluster may have no worker before the run gives up; longer if an autoscaler can add nodes."""
HEAD = "node:__internal_head__"
"""The resource by which Ray marks the head."""


@dataclass(frozen=True)
class Node:
    """One machine of a cluster; ``id`` is Ray's, ``name`` its address."""

    name: str
    cpus: float
    gpus: float
    head: bool = False
    id: str = ""

    def room(self, cpus: float, gpus: float) -> int:
        """Return how many workers of this size fit."""
        fits = int(self.cpus / cpus + 1e-9)
        if gpus > 1:
            return min(fits, int(self.gpus // gpus))
        if gpus > 0:
            return min(fits, int(self.gpus) * int(1 / gpus + 1e-9))
        return fits


@dataclass(frozen=True)
class Autoscaler:
    """What an autoscaler says: nodes that it is starting (kind → number), and kinds that failed to start."""

    starting: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.starting:
            text = "the autoscaler is starting " + ", ".join(f"{count} {kind}" for kind, count in self.starting.items())
        else:
            text = "the autoscaler is starting nothing"
        return f"{text}; failed to start: {', '.join(self.failed)}" if self.failed else text


@dataclass(frozen=True)
class Cluster:
    """The machines that are alive, and the autoscaler, if there is one."""

    nodes: tuple[Node, ...]
    autoscaler: Autoscaler | None = None

    def room(self, cpus: float, gpus: float) -> int:
        """Return how many workers of this size fit on the machines that are alive."""
        return sum(node.room(cpus, gpus) for node in self.nodes)

    def usable(self, head: bool) -> Cluster:
        """Return the cluster without its head, unless that has GPUs or ``head`` allows it."""
        nodes = tuple(node for node in self.nodes if head or node.gpus or not node.head)
        return Cluster(nodes, self.autoscaler)

    def __str__(self) -> str:
        cpus, gpus = sum(node.cpus for node in self.nodes), sum(node.gpus for node in self.nodes)
        text = f"{len(self.nodes)} node(s) with {cpus:g} CPUs and {gpus:g} GPUs"
        return f"{text}; {self.autoscaler}" if self.autoscaler else text


def describe() -> Cluster:
    """Return what the connected cluster has (call inside ``connect``)."""
    import ray

    nodes = tuple(
        Node(
            str(node["NodeManagerAddress"]),
            node["Resources"].get("CPU", 0.0),
            node["Resources"].get("GPU", 0.0),
            HEAD in node["Resources"],
            str(node["NodeID"]),
        )
        for node in ray.nodes()
        if node["Alive"]
    )
    return Cluster(nodes, autoscaler())


def autoscaler() -> Autoscaler | None:
    """Return what the autoscaler of the connected cluster says, None if there is none.

    Ray's first autoscaler leaves its report in the cluster's key-value store, the second one (KubeRay, ``ray up`` by
    default) with the cluster's state; neither says which nodes it could start.
    """
    from ray.autoscaler.v2.sdk import get_cluster_status
    from ray.experimental.internal_kv import _internal_kv_get

    report = _internal_kv_get(b"__autoscaling_status")
    if report:  # a cluster without one has a monitor that reports loads only
        found = json.loads(report).get("autoscaler_report")
        return _first_autoscaler(found) if found else None
    import ray

    status = get_cluster_status(ray.get_runtime_context().gcs_address)
    if not int(status.stats.autoscaler_version or 0):
        return None
    starting: dict[str, int] = {}
    for launch in status.pending_launches:
        starting[launch.ray_node_type_name] = starting.get(launch.ray_node_type_name, 0) + launch.count
    for node in status.pending_nodes:
        starting[node.ray_node_type_name] = starting.get(node.ray_node_type_name, 0) + 1
    return Autoscaler(starting, tuple(sorted({launch.ray_node_type_name for launch in status.failed_launches})))


def _first_autoscaler(report: Mapping[str, Any]) -> Autoscaler:
    starting = dict(report.get("pending_launches") or {})
    for _, kind, *_ in report.get("pending_nodes") or []:
        starting[kind] = starting.get(kind, 0) + 1
    failed = {str(kind) for _, kind in report.get("failed_nodes") or []}
    found = (report.get("node_availability_summary") or {}).get("node_availabilities") or {}
    failed |= {kind for kind, availability in found.items() if not availability.get("is_available", True)}
    return Autoscaler(starting, tuple(sorted(failed)))


def require_room(workers: Workers, least: int | None = None) -> None:
    """Raise BadInput when the connected cluster cannot ever hold ``workers`` (others' use of it is not counted).

    On a joined cluster one worker is enough, and with an autoscaler nothing is refused. ``least`` of them are enough
    when given: for work that goes on with the machines that are left.
    """
    cluster = describe()
    if workers.address is not None:
        usable = cluster.usable(workers.head)
        if usable.room(workers.cpus, workers.gpus) >= workers.per_model or cluster.autoscaler:
            return
        alone = cluster.room(workers.cpus, workers.gpus)
        raise BadInput(
            f"{workers.fewest} fits: the cluster at {workers.address} has {cluster}"
            + (
                ", all on its head, which trains only if asked: --set compute.head=true, or add nodes"
                if alone
                else "; ask for smaller workers, or add nodes"
            )
        )
    least = workers.count if least is None else least
    if cluster.room(workers.cpus, workers.gpus) < least:
        raise BadInput(
            f"{workers.count} workers with {workers.cpus:g} CPUs and {workers.gpus:g} GPUs each do not fit: "
            f"this machine has {cluster}; ask for fewer or smaller workers"
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
        usable = cluster.usable(self._workers.head) if self._workers.address else cluster
        if usable.room(self._workers.cpus, self._workers.gpus) >= self._workers.per_model:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now
        elif now - self._empty_since > (GROWING_PATIENCE_SECONDS if cluster.autoscaler else PATIENCE_SECONDS):
            raise WorkersLost(
                f"no room: {self._workers.fewest} fits for {now - self._empty_since:.0f} s: the cluster is "
                f"down to {cluster}; start nodes and run the same command again"
            )

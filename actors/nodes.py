"""Questions to every living node of a cluster, and which nodes reach which."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from actors.capacity import HEAD, Node

ANSWER_SECONDS = 90.0
CONNECT_SECONDS = 3.0
ROUND_TRIPS = 3
NEIGHBOURS = 8
"""Nodes that each node connects to (the next ones in a ring), so that a large cluster is asked in linear time."""


@dataclass(frozen=True)
class Answer:
    """What one node said: ``said`` is None where ``problem`` says why nothing came.

    ``skew``: seconds that its clock is ahead of ours. ``unreached``: connections to other nodes that failed.
    """

    node: Node
    said: Any
    problem: str = ""
    skew: float = 0.0
    unreached: tuple[str, ...] = ()


def ask_nodes(question: Callable[[], Any], seconds: float = ANSWER_SECONDS) -> list[Answer]:
    """Ask ``question`` (pickled by reference) in a process on every node of the connected cluster.

    The processes hold no CPU, so nodes that are busy answer as well. Nodes silent for ``seconds`` are reported.
    """
    import ray
    from ray.exceptions import GetTimeoutError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    alive = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: str(node["NodeManagerAddress"]))
    kind = ray.remote(_Witness)
    witnesses = [
        kind.options(
            num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in alive
    ]
    deadline = time.monotonic() + seconds
    asked = [witness.answer.remote(question) for witness in witnesses]
    answers = []
    for place, (node, witness) in enumerate(zip(alive, witnesses, strict=True)):
        described = _node(node)
        try:
            said = ray.get(asked[place], timeout=max(1.0, deadline - time.monotonic()))
            others = [(place + step) % len(alive) for step in range(1, min(NEIGHBOURS, len(alive) - 1) + 1)]
            ports = [port for other in others for port in _ports(alive[other])]
            peers = [(str(alive[other]["NodeManagerAddress"]), witnesses[other]) for other in others]
            unreached = ray.get(witness.reach.remote(ports, peers), timeout=max(10.0, deadline - time.monotonic()))
            answers.append(Answer(described, said, skew=_skew(witness), unreached=tuple(unreached)))
        except GetTimeoutError:
            answers.append(Answer(described, None, f"no answer within {seconds:g} s"))
        except RayError as error:
            answers.append(Answer(described, None, _reason(error)))
    for witness in witnesses:
        ray.kill(witness)
    return answers


class _Witness:
    """A process on a node."""

    def answer(self, question: Callable[[], Any]) -> Any:
        """Return the node's answer."""
        return question()

    def now(self) -> float:
        """Return the node's time."""
        return time.time()

    def reach(self, ports: Sequence[tuple[str, str, int]], peers: Sequence[tuple[str, Any]]) -> list[str]:
        """Return the connections that fail: to ports (what, host, number) and to processes of Ray's on other nodes."""
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        failed = [f"{host}:{number} ({what})" for what, host, number in ports if not _listens(host, number)]
        for host, peer in peers:
            try:
                ray.get(peer.now.remote(), timeout=CONNECT_SECONDS * 5)
            except (GetTimeoutError, RayError):
                failed.append(f"{host} (workers' ports)")
        return failed


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _ports(node: dict[str, Any]) -> list[tuple[str, str, int]]:
    host = str(node["NodeManagerAddress"])
    return [
        ("node manager", host, int(node["NodeManagerPort"])),
        ("object manager", host, int(node["ObjectManagerPort"])),
    ]


def _node(node: dict[str, Any]) -> Node:
    there = node["Resources"]
    host = str(node["NodeManagerAddress"])
    return Node(host, there.get("CPU", 0.0), there.get("GPU", 0.0), HEAD in there, str(node["NodeID"]))


def _skew(witness: Any) -> float:
    """Return how far the clock of a process is ahead of ours, by the quickest of some round trips."""
    import ray

    best = (float("inf"), 0.0)
    for _ in range(ROUND_TRIPS):
        begun = time.time()
        there = ray.get(witness.now.remote(), timeout=CONNECT_SECONDS * 5)
        ended = time.time()
        best = min(best, (ended - begun, there - (begun + ended) / 2))
    return best[1]


def _reason(error: Exception) -> str:
    """Return the last line of an error of Ray's, which names what was raised on the node."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:200]

"""Keeping workers off a cluster's head, whose CPUs are for the command itself and for Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actors.capacity import Node, describe
from actors.jobs import Workers

HOLD_SECONDS = 10.0


@contextmanager
def head_left_out(workers: Workers) -> Iterator[None]:
    """Hold the CPUs of a head without GPU meanwhile, unless the head may be worked on.

    Workers then go elsewhere, and an autoscaler, which counts what is free, starts nodes for them.
    """
    import ray

    heads = [node for node in describe().nodes if node.head and node.cpus and not node.gpus]
    holders = [_hold(head) for head in heads if not workers.head]
    try:
        yield
    finally:
        for holder in holders:
            ray.kill(holder)


def _hold(head: Node) -> Any:
    """Return an actor that holds all CPUs of a node or, where others use some for long, those that are free."""
    import ray
    from ray._private.state import available_resources_per_node
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(head.id, soft=False)
    kind = ray.remote(_Holder)
    holder = kind.options(num_cpus=head.cpus, scheduling_strategy=there).remote()
    if ray.wait([holder.ready.remote()], timeout=HOLD_SECONDS)[0]:
        return holder
    ray.kill(holder)
    free = int(available_resources_per_node().get(head.id, {}).get("CPU", 0.0))
    return kind.options(num_cpus=free, scheduling_strategy=there).remote()


class _Holder:
    """An actor that does nothing but hold its place."""

    def ready(self) -> None:
        """Return at once."""

"""Messages of a pool while its workers come and go: how many work, what the others wait for; its patience."""

from __future__ import annotations

import time

from actors.capacity import GROWING_PATIENCE_SECONDS, PATIENCE_SECONDS, describe
from actors.jobs import Tell, Workers, WorkersLost
from actors.queue_server import QueueState

START_SECONDS = 15.0
"""What workers take to start on a machine that is there, at most: nothing is said before."""
LOOK_SECONDS = 5.0
TELL_SECONDS = 30.0


class Waiting:
    """Looks at the cluster every few seconds at most, and only while no worker is at work."""

    def __init__(self, workers: Workers, tell: Tell) -> None:
        self._workers = workers
        self._tell = tell
        self._next_look = 0.0
        self._begin = self._last_alive = self._told = time.monotonic()
        self._hosts: frozenset[str] = frozenset()

    def check(self, state: QueueState) -> None:
        """Tell what has changed; raise WorkersLost when no worker has come for too long."""
        now = time.monotonic()
        if state.workers:
            self._last_alive = now
        if now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        hosts = frozenset(seen.place.node for seen in state.workers.values())
        if hosts != self._hosts:
            self._hosts = hosts
            if self._workers.address is not None or self._told > self._begin:  # on this machine alone it is no news
                self._tell(f"{_workers(len(state.workers))} on {len(hosts)} node{'s' * (len(hosts) != 1)}")
                self._told = now
        if state.workers:
            return
        cluster = describe()
        patience = GROWING_PATIENCE_SECONDS if cluster.autoscaler else PATIENCE_SECONDS
        if now - self._last_alive > patience:
            raise WorkersLost(
                f"no worker with {self._workers.size} came for {now - self._last_alive:.0f} s: the cluster has "
                f"{cluster}; start nodes and run the same command again"
            )
        head = self._workers.head or self._workers.address is None
        room = cluster.usable(head).room(self._workers.cpus, self._workers.gpus)
        first = self._told == self._begin and (not room or now - self._begin > START_SECONDS)
        if first or now - self._told > TELL_SECONDS:
            self._told = now
            what = "they are starting" if room else cluster.autoscaler or f"the cluster has {cluster}"
            self._tell(f"waiting for workers with {self._workers.size}: {what}")


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count != 1)}"

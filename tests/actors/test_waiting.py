"""What a pool tells while nobody or somebody is at work, and how long it waits for a worker."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from actors import waiting
from actors.capacity import Autoscaler, Cluster, Node
from actors.jobs import Workers, WorkersLost
from actors.lives import Place
from actors.queue_server import QueueServer
from actors.waiting import Waiting

FULL, EMPTY = Cluster((Node("a", 4, 0),)), Cluster(())
GROWING = Cluster((), Autoscaler({"gpu_worker": 2}))


class World:
    """A cluster, and seconds that pass when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, address: str | None = None) -> None:
        self.now = 100.0
        self.cluster = cluster
        self.said: list[str] = []
        self.queue = QueueServer([], clock=lambda: self.now)
        monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(waiting, "describe", lambda: self.cluster)
        self.waiting = Waiting(Workers(2, address=address), self.said.append)

    def wait(self, seconds: int) -> None:
        """Let time pass while the pool looks."""
        for _ in range(seconds):
            self.now += 1
            self.waiting.check(self.queue.state())


def test_workers_that_start_where_there_is_room_are_not_spoken_of_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, FULL)
    world.wait(15)
    assert world.said == []
    world.wait(6)
    assert world.said == ["waiting for workers with 1 CPU: they are starting"]
    life = world.queue.begin("w0", Place("node", "10.0.0.1", 1))
    world.wait(5)
    assert world.said[1:] == ["1 worker on 1 node"]
    world.queue.lost("w0", life)
    world.wait(20)
    assert world.said[2:] == ["0 workers on 0 nodes"]


@pytest.mark.parametrize(("address", "told"), [("10.0.0.1:6379", ["1 worker on 1 node"]), (None, [])])
def test_the_nodes_of_a_cluster_are_told_and_this_machine_is_not(
    monkeypatch: pytest.MonkeyPatch, address: str | None, told: list[str]
) -> None:
    world = World(monkeypatch, FULL, address)
    world.queue.begin("w0", Place("node", "10.0.0.1", 1))
    world.wait(20)
    assert world.said == told


def test_what_an_autoscaler_does_is_told_at_once_and_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, GROWING)
    world.wait(61)
    assert world.said == ["waiting for workers with 1 CPU: the autoscaler is starting 2 gpu_worker"] * 2


@pytest.mark.parametrize(("cluster", "seconds"), [(EMPTY, 120), (GROWING, 1800)], ids=["nothing", "autoscaler"])
def test_patience_ends_when_no_worker_comes(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, seconds: int) -> None:
    world = World(monkeypatch, cluster)
    world.wait(60)
    world.queue.begin("w0", Place())
    world.wait(5)
    world.queue.forget("w0")
    world.wait(seconds)
    with pytest.raises(WorkersLost, match=r"^no worker with 1 CPU came for 1\d+ s: the cluster has 0 node"):
        world.wait(10)

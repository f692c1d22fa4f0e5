"""Workers as plain Ray actors, each for itself: they come as the cluster grows, go when idle, and die alone.

Asking is enough: an actor that waits for a place makes an autoscaler start a node for it. An actor that dies is started
again by Ray, elsewhere if its node is gone; one that hangs is killed. None of this touches the others.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from actors.capacity import describe
from actors.jobs import MAX_LOSSES, MakePerform, Tell, Workers, WorkersLost
from actors.queue_server import QueueState
from actors.serve import serve
from actors.waiting import Waiting

LEAST_PENDING = 4
"""So many workers may be waited for at a time; once more are at work, as many again."""
IDLE_SECONDS = 20.0
"""A worker without a job goes after this time while others' jobs may still release some; at once if none can come."""
SURPLUS_SECONDS = 5.0


class ServingActor:
    """The actor: its constructor returns at once and leaves a thread that serves, also when Ray starts it again."""

    def __init__(self, queue: str, worker: str, make_perform: MakePerform, threads: int) -> None:
        self._over = threading.Event()
        arguments = (queue, worker, make_perform, threads)
        threading.Thread(target=self._serve, args=arguments, name="serve", daemon=True).start()

    def _serve(self, *arguments: Any) -> None:
        try:
            serve(*arguments)
        finally:
            self._over.set()

    def wait(self) -> None:
        """Return when the loop is over; the driver learns of a death from this call."""
        self._over.wait()


@dataclass
class _Slot:
    """One worker: its actor, the call that breaks when it dies, the life that was last seen, when it was asked for."""

    actor: Any
    ended: Any
    life: int = 0
    host: str = ""
    asked: float = 0.0
    told_lost: int = 0
    next_call: float = 0.0


class ActorPool:
    """As many actors as there are jobs to do at a time, at most ``workers.count``."""

    def __init__(self, queue: str, make_perform: MakePerform, workers: Workers, tell: Tell) -> None:
        import ray

        self._queue = queue
        self._server = ray.get_actor(queue)
        self._make_perform = make_perform
        self._workers = workers
        self._tell = tell
        self._class = ray.remote(ServingActor)
        self._slots: dict[str, _Slot] = {}
        self._count = 0
        self._unborn = 0
        self._left_out: dict[str, str] = {}
        self._surplus_since: float | None = None
        self._waiting = Waiting(workers, tell)

    @property
    def ended(self) -> str | None:
        """Never over by itself: as long as there are jobs workers are asked for."""
        return None

    def tend(self, state: QueueState) -> None:
        """Bury the dead, kill the hung, leave bad machines, ask for workers, let the idle go, say what is up."""
        self._note(state)
        self._deaths()
        self._hung(state)
        self._leave(state)
        self._size(state)
        self._judge(state)
        self._waiting.check(state)

    def wait(self, seconds: float) -> None:
        """Wait for ``seconds``, less if a worker dies."""
        import ray

        now = time.monotonic()
        calls = [slot.ended for slot in self._slots.values() if slot.ended is not None and slot.next_call <= now]
        if calls:
            ray.wait(calls, num_returns=1, timeout=seconds)
        else:
            time.sleep(seconds)

    def close(self, given_up: bool) -> None:
        """Kill all actors, those that wait for a place as well: no request may keep a node."""
        for name in list(self._slots):
            self._remove(name)

    def _add(self) -> None:
        name = f"w{self._count}"
        self._count += 1
        options: dict[str, Any] = {
            "num_cpus": self._workers.cpus,
            "num_gpus": self._workers.gpus,
            "max_restarts": -1,
            "max_task_retries": 0,
        }
        if self._left_out:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(sorted(self._left_out))})"}
        actor = self._class.options(**options).remote(self._queue, name, self._make_perform, self._workers.threads)
        self._slots[name] = _Slot(actor, actor.wait.remote(), asked=time.monotonic())

    def _remove(self, name: str) -> None:
        import ray

        slot = self._slots.pop(name)
        ray.kill(slot.actor)
        self._server.forget.remote(name)

    def _note(self, state: QueueState) -> None:
        for name, seen in state.workers.items():
            if (slot := self._slots.get(name)) is not None and seen.life > slot.life:
                slot.life, slot.host = seen.life, seen.place.host
                self._unborn = 0

    def _deaths(self) -> None:
        import ray
        from ray.exceptions import ActorUnavailableError, RayError

        now = time.monotonic()
        calls = {slot.ended: name for name, slot in self._slots.items() if slot.next_call <= now}
        if not calls:
            return
        over, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        for call in over:
            name = calls[call]
            slot = self._slots[name]
            try:
                ray.get(call)
            except ActorUnavailableError:  # Ray is starting it again
                self._lost(name, slot)
                slot.ended, slot.next_call = slot.actor.wait.remote(), now + 1.0
            except RayError as error:  # it will not come again
                self._lost(name, slot)
                self._remove(name)
                if slot.life == 0:
                    self._died_unborn(error)
            else:  # its loop is over: the queue told it to stop
                self._remove(name)

    def _lost(self, name: str, slot: _Slot) -> None:
        if slot.life > slot.told_lost:
            slot.told_lost = slot.life
            self._server.lost.remote(name, slot.life)

    def _died_unborn(self, error: Exception) -> None:
        self._unborn += 1
        if self._unborn >= MAX_LOSSES:
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise WorkersLost(f"workers die before they are ready: {reason}")

    def _hung(self, state: QueueState) -> None:
        import ray

        for name in state.silent:
            slot = self._slots.get(name)
            if slot is None or slot.told_lost >= state.workers[name].life:
                continue
            self._tell(f"worker on {state.workers[name].place.host} hangs: it is killed, its job is done again")
            slot.life = state.workers[name].life
            self._lost(name, slot)
            ray.kill(slot.actor, no_restart=False)

    def _leave(self, state: QueueState) -> None:
        for node in state.left_out.keys() - self._left_out.keys():
            self._left_out[node] = state.left_out[node]
            there = [name for name, seen in state.workers.items() if seen.place.node == node and name in self._slots]
            host = state.workers[there[0]].place.host if there else node[:12]
            self._tell(f"{host} is left out: {state.left_out[node]}")
        if not self._left_out:
            return
        for name in [name for name, seen in state.workers.items() if seen.place.node in self._left_out]:
            if name in self._slots:
                self._lost(name, self._slots[name])
                self._remove(name)

    def _size(self, state: QueueState) -> None:
        now = time.monotonic()
        doubtful = len(state.doubtful)
        wanted = 0 if state.failure else min(self._workers.count, max(1, state.ready + state.leased + doubtful))
        waiting = [name for name, slot in self._slots.items() if slot.life == 0]
        begun = len(self._slots) - len(waiting)
        for _ in range(min(wanted - len(self._slots), max(LEAST_PENDING, begun) - len(waiting))):
            self._add()
        if len(self._slots) <= wanted:
            self._surplus_since = None
            return
        self._surplus_since = self._surplus_since or now
        if now - self._surplus_since < SURPLUS_SECONDS and state.blocked:
            return
        patience = IDLE_SECONDS if state.blocked else 0.0
        idle = [
            name
            for name, seen in state.workers.items()
            if name in self._slots and not seen.busy and seen.idle >= patience
        ]
        for name in [*waiting, *idle][: len(self._slots) - wanted]:
            self._remove(name)

    def _judge(self, state: QueueState) -> None:
        if state.suspects:
            alive = {node.id for node in describe().nodes}
            self._server.judge.remote({key: node in alive for key, node in state.suspects.items()})

"""Attack units (shards of candidates) on a pool of Ray actors that keep their data and their share of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.capacity import RoomWatch, require_room
from actors.cluster import connect
from actors.environment import limit_threads
from actors.failures import pack_failure, unpack_failure
from actors.job_queue import JobQueue, run_here
from actors.jobs import MAX_LOSSES, Job, MakePerform, Perform, Progress, Workers, WorkersLost

WAIT_SECONDS = 1.0


def run_units(units: Sequence[Job], make_perform: MakePerform, workers: Workers, *, on_progress: Progress) -> None:
    """Do all ``units`` on ``workers.count`` actors; a unit starts when its needs are done and an actor is free.

    A unit's exception stops the run and is raised here with its own type and message, after the units in progress are
    finished. A unit whose actor died is done again elsewhere. Raises BadInput when the cluster cannot hold a single
    actor, WorkersLost when a unit killed its actor too often, actors die before they are ready, or no room is left.
    """
    if workers.count == 0 or not units:
        run_here(units, make_perform, on_progress)
        return
    queue = JobQueue(units)
    with connect(workers):
        require_room(workers, least=1)  # a node may have been lost since the run began
        pool = _Pool(make_perform, workers, min(workers.count, len(units)))
        try:
            _serve(queue, {unit.key: unit for unit in units}, pool, on_progress)
        finally:
            pool.close()


class UnitWorker:
    """The actor: prepares once, then does one unit a call; an exception is returned, packed, as the answer."""

    def __init__(self, make_perform: MakePerform, threads: int) -> None:
        self._make_perform = make_perform
        self._threads = threads
        self._perform: Perform | None = None

    def work(self, unit: Job | None) -> bytes | None:
        """Do ``unit`` (None: only prepare); return None or the packed failure."""
        try:
            if self._perform is None:
                limit_threads(self._threads)
                self._perform = self._make_perform()
            if unit is not None:
                self._perform(unit)
        except Exception as error:  # every failure is an answer, so that it arrives as itself
            return pack_failure(error)
        return None


class _Pool:
    """Actors that replace each other when they die, and what each of them is busy with."""

    def __init__(self, make_perform: MakePerform, workers: Workers, size: int) -> None:
        import ray

        self._actor: Any = ray.remote(UnitWorker).options(num_cpus=workers.cpus, num_gpus=workers.gpus)
        self._make_perform = make_perform
        self._workers = workers
        self._watch = RoomWatch(workers)
        self._early_deaths = 0
        self.free: list[Any] = []
        self.busy: dict[Any, tuple[Any, str | None]] = {}
        """The pending answer -> (actor, key of its unit; None while it prepares)."""
        for _ in range(size):
            self.add()

    def add(self) -> None:
        """Start an actor; it is free once it has prepared."""
        actor = self._actor.remote(self._make_perform, self._workers.threads)
        self.busy[actor.work.remote(None)] = (actor, None)

    def assign(self, key: str, unit: Job) -> None:
        """Give ``unit`` to a free actor."""
        actor = self.free.pop()
        self.busy[actor.work.remote(unit)] = (actor, key)

    def next_answer(self) -> tuple[str | None, bytes | None, bool] | None:
        """Wait for one answer: (key or None, failure or None, whether the actor lived); None when time has passed."""
        import ray
        from ray.exceptions import RayActorError

        ready, _ = ray.wait(list(self.busy), num_returns=1, timeout=WAIT_SECONDS)
        if not ready:
            self._watch.check()
            return None
        actor, key = self.busy.pop(ready[0])
        try:
            failure: bytes | None = ray.get(ready[0])
        except RayActorError as error:
            if key is None:
                self._early_deaths += 1
                if self._early_deaths >= MAX_LOSSES:
                    raise self.lost(f"workers die before they are ready: {str(error).splitlines()[0]}") from error
            self.add()
            return key, None, False
        self.free.append(actor)
        return key, failure, True

    def lost(self, reason: str) -> WorkersLost:
        """Return the error for ``reason``, with the log's name."""
        return WorkersLost(f"{reason}{self._workers.see_log()}")

    def close(self) -> None:
        """End all actors."""
        import ray

        for actor in [*self.free, *(actor for actor, _ in self.busy.values())]:
            ray.kill(actor)


def _serve(queue: JobQueue, units: dict[str, Job], pool: _Pool, on_progress: Progress) -> None:
    on_progress(0, queue.total)
    failure: bytes | None = None
    while not queue.finished:
        while pool.free and failure is None and (key := queue.take()) is not None:
            pool.assign(key, units[key])
        if failure is not None and all(key is None for _, key in pool.busy.values()):
            raise unpack_failure(failure)
        answer = pool.next_answer()
        if answer is None:
            continue
        key, problem, alive = answer
        if problem is not None:
            failure = failure or problem
        elif key is None:
            continue
        elif alive:
            queue.finish(key)
            on_progress(queue.done, queue.total)
        else:
            given_up = queue.count_loss(key)
            if given_up:
                raise pool.lost(given_up)
            queue.give_back(key)
    if failure is not None:
        raise unpack_failure(failure)

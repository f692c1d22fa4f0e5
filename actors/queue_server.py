"""The queue as workers and driver see it: who works on what, who beats, whose work was lost, and by whose fault."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.job_queue import ELSEWHERE_SECONDS, JobQueue
from actors.jobs import MAX_LOSSES, Job

WAIT = "wait"
WORK = "work"
STOP = "stop"
SILENT_SECONDS = 30.0
"""A worker that has not beaten for so long counts as hung: its job goes to another one, and it is killed."""
PAUSE_SECONDS = 5.0
"""The driver asks for the state ten times a second. After a longer pause the machine or the driver slept, and nobody
is called silent for that."""
SUSPECT_SECONDS = 20.0
"""Ray notices a lost machine after 14 to 17 s: only then is known whether a worker died alone."""
NODE_FAULTS = 3
"""Workers that died on one machine, at different jobs and with none finished between, before it is left out."""


@dataclass(frozen=True)
class Place:
    """Where a worker runs: id of its Ray node, address of the machine, process id."""

    node: str = ""
    host: str = ""
    pid: int = 0


@dataclass(frozen=True)
class Seen:
    """A worker as the driver sees it: its life (counts from 1), place, whether it has a job, seconds without one."""

    life: int
    place: Place
    busy: bool
    idle: float


@dataclass(frozen=True)
class QueueState:
    """What the driver learns when it asks.

    Counts of jobs; a packed failure; a reason to give up; jobs of unknown fate; workers by name; those that are silent;
    ``suspects``: jobs whose worker died a while ago → the node of that worker; machines to be left out.
    """

    done: int
    total: int
    ready: int
    leased: int
    blocked: int
    failure: bytes | None
    given_up: str | None
    doubtful: tuple[str, ...]
    workers: Mapping[str, Seen]
    silent: tuple[str, ...]
    suspects: Mapping[str, str]
    left_out: Mapping[str, str]


@dataclass
class _Worker:
    life: int
    place: Place
    beat: float
    idle_since: float
    took: bool = False
    over: bool = False


@dataclass
class _Suspect:
    worker: str
    node: str
    since: float


@dataclass
class QueueServer:
    """The queue of one pool (a Ray actor). A worker is a name that outlives its process; each process is a life of it.

    A lease belongs to one life. What a life had taken when it ended becomes doubtful, and the driver, who can look into
    the store, settles it; what an old life says it has finished likewise.
    """

    jobs: Sequence[Job]
    max_losses: int = MAX_LOSSES
    clock: Callable[[], float] = time.monotonic
    _workers: dict[str, _Worker] = field(default_factory=dict)
    _leases: dict[str, tuple[str, int]] = field(default_factory=dict)
    _doubtful: set[str] = field(default_factory=set)
    _suspects: dict[str, _Suspect] = field(default_factory=dict)
    _early: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _left_out: dict[str, str] = field(default_factory=dict)
    _failure: bytes | None = None
    _given_up: str | None = None
    _stopped: bool = False
    _asked: float | None = None

    def __post_init__(self) -> None:
        self.queue = JobQueue(self.jobs, self.max_losses, self.clock)
        self._by_key = {job.key: job for job in self.jobs}

    # asked by workers

    def begin(self, worker: str, place: Place, group: int | None = None) -> int:
        """Announce a process that starts; return its life, to be shown with every other call.

        ``group``: the size of a group that restarts as one, whose workers are named 0, 1, …: then only ``blame`` says
        which of them died, and those beyond the size are gone.
        """
        before = self._workers.get(worker)
        if before is not None:
            if not before.took:
                self._died_early(worker, before.place.node)
            self._end(worker, suspect=group is None)
            if group is None and place.node == before.place.node:  # the machine lives: its process died by itself
                for key in [key for key, suspect in self._suspects.items() if suspect.worker == worker]:
                    self._guilty(key)
        for other in [name for name in self._workers if group is not None and int(name) >= group]:
            self._end(other, suspect=False)
            del self._workers[other]
        now = self.clock()
        self._workers[worker] = _Worker(before.life + 1 if before else 1, place, now, now)
        return self._workers[worker].life

    def take(self, worker: str, life: int) -> tuple[str, Job | None]:
        """Return (WORK, job), (WAIT, None) or (STOP, None); a process of an earlier life is told to stop."""
        over = self._stopped or self._failure or self._given_up or self.queue.finished
        if not self.beat(worker, life) or over:
            return STOP, None
        self._workers[worker].took = True
        self._early.pop(worker, None)
        key = self.queue.take()
        if key is None:
            return WAIT, None
        self._leases[key] = (worker, life)
        return WORK, self._by_key[key]

    def beat(self, worker: str, life: int) -> bool:
        """Note that a process lives; return whether it may go on."""
        found = self._workers.get(worker)
        if found is None or found.life != life or found.over:
            return False
        found.beat = self.clock()
        return True

    def finish(self, worker: str, life: int, key: str) -> None:
        """Note that ``key`` is done; the word of a process whose life is over is checked by the driver."""
        self.beat(worker, life)
        if self._leases.get(key) != (worker, life):
            if not self.queue.is_done(key):
                self._doubtful.add(key)
            return
        self._release(key)
        self.queue.finish(key)
        self._suspects.pop(key, None)
        self._faults.pop(self._workers[worker].place.node, None)

    def postpone(self, worker: str, life: int, key: str) -> None:
        """Give a job back that somebody else is doing; it is handed out again a little later."""
        if self._leases.get(key) == (worker, life):
            self._release(key)
            self.queue.give_back(key, ELSEWHERE_SECONDS)

    def unfit(self, worker: str, life: int, key: str | None, reason: str) -> None:
        """Leave the machine of a worker out, which says that it cannot do the work."""
        if key is not None and self._leases.get(key) == (worker, life):
            self._release(key)
            self.queue.give_back(key)
        if worker in self._workers:
            self._left_out[self._workers[worker].place.node] = reason

    def fail(self, failure: bytes, worker: str = "", life: int = 0) -> None:
        """Note an exception (``pack_failure``); the first one counts, and nobody gets a job any more."""
        self._failure = self._failure or failure
        for key in [key for key, holder in self._leases.items() if holder == (worker, life)]:
            self._release(key)

    # asked by the driver

    def lost(self, worker: str, life: int) -> None:
        """Note that ``life`` of a worker is over, whether its process knows it or not."""
        found = self._workers.get(worker)
        if found is not None and found.life == life:
            self._end(worker, suspect=True)

    def blame(self, workers: Sequence[str]) -> None:
        """Note that ``workers`` of a group died with what they had taken."""
        for key in [key for key, (holder, _) in self._leases.items() if holder in workers]:
            self._given_up = self._given_up or self.queue.count_loss(key)

    def forget(self, worker: str) -> None:
        """Note that a worker is gone for good."""
        self._end(worker, suspect=True)
        self._workers.pop(worker, None)

    def settle(self, is_done: Mapping[str, bool]) -> None:
        """Decide doubtful jobs: done after all, or to be done again (unless somebody is at it already)."""
        for key, done in is_done.items():
            if key not in self._doubtful:
                continue
            self._doubtful.discard(key)
            if done:
                self._leases.pop(key, None)
                self.queue.finish(key)
            elif key not in self._leases:
                self.queue.give_back(key)

    def judge(self, guilty: Mapping[str, bool]) -> None:
        """Decide suspects: the worker died alone on a machine that lives (a fault), or went with its machine."""
        for key, fault in guilty.items():
            if fault:
                self._guilty(key)
            else:
                self._suspects.pop(key, None)

    def stop(self) -> None:
        """Hand out nothing any more."""
        self._stopped = True

    def state(self) -> QueueState:
        """Return what the driver needs to know."""
        now = self.clock()
        if self._asked is not None and now - self._asked > PAUSE_SECONDS:
            for worker in self._workers.values():
                worker.beat = now
        self._asked = now
        busy = {holder for holder, _ in self._leases.values()}
        alive = {name: worker for name, worker in self._workers.items() if not worker.over}
        return QueueState(
            done=self.queue.done,
            total=self.queue.total,
            ready=self.queue.ready,
            leased=len(self._leases),
            blocked=self.queue.blocked,
            failure=self._failure,
            given_up=self._given_up,
            doubtful=tuple(sorted(self._doubtful)),
            workers={
                name: Seen(worker.life, worker.place, name in busy, 0.0 if name in busy else now - worker.idle_since)
                for name, worker in alive.items()
            },
            silent=tuple(name for name, worker in alive.items() if now - worker.beat > SILENT_SECONDS),
            suspects={
                key: suspect.node for key, suspect in self._suspects.items() if now - suspect.since > SUSPECT_SECONDS
            },
            left_out=dict(self._left_out),
        )

    # within

    def _release(self, key: str) -> None:
        worker, _ = self._leases.pop(key)
        if worker in self._workers:
            self._workers[worker].idle_since = self.clock()

    def _end(self, worker: str, *, suspect: bool) -> None:
        """End a life: what it had taken is doubtful; with ``suspect`` somebody must say who is at fault."""
        found = self._workers.get(worker)
        if found is None:
            return
        found.over = True
        for key in [key for key, lease in self._leases.items() if lease == (worker, found.life)]:
            del self._leases[key]
            self._doubtful.add(key)
            if suspect:
                self._suspects[key] = _Suspect(worker, found.place.node, self.clock())

    def _guilty(self, key: str) -> None:
        suspect = self._suspects.pop(key, None)
        if suspect is None:
            return
        self._given_up = self._given_up or self.queue.count_loss(key)
        self._note_fault(suspect.node, key)

    def _died_early(self, worker: str, node: str) -> None:
        """Count a process that died before it was ready: three in a row end the run, or cost the machine its place."""
        self._early[worker] += 1
        if self._early[worker] < MAX_LOSSES:
            return
        if any(other.took and other.place.node != node for other in self._workers.values()):
            self._left_out[node] = f"{self._early[worker]} workers died there before they were ready"
        else:
            self._given_up = self._given_up or f"workers die before they are ready ({self._early[worker]} in a row)"

    def _note_fault(self, node: str, key: str) -> None:
        self._faults[node].append(key)
        if len(self._faults[node]) >= NODE_FAULTS and len(set(self._faults[node])) > 1:
            self._left_out[node] = f"{len(self._faults[node])} workers died there, at different jobs"

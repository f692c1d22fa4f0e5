"""The queue as workers and driver see it: what each of them may ask, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.job_queue import ELSEWHERE_SECONDS, JobQueue
from actors.jobs import MAX_LOSSES, Job
from actors.lives import Lives, Place, Seen
from actors.verdicts import Verdicts

WAIT = "wait"
WORK = "work"
STOP = "stop"


@dataclass(frozen=True)
class QueueState:
    """What the driver learns when it asks.

    Counts of jobs; a packed failure; a reason to give up; jobs of unknown fate; workers by name; those that are silent;
    ``suspects``: jobs whose worker died a while ago → the node of that worker; machines to be left out; ``words``: the
    last words of jobs in hand.
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
    words: Mapping[str, str]


@dataclass(repr=False)
class QueueServer:
    """The queue of one pool (a Ray actor). A worker is a name that outlives its process; each process is a life of it.

    A lease belongs to one life. What a life had taken when it ended becomes doubtful, and the driver, who can look into
    the store, settles it; what an old life says it has finished likewise.
    """

    jobs: Sequence[Job]
    max_losses: int = MAX_LOSSES
    clock: Callable[[], float] = time.monotonic
    _doubtful: set[str] = field(default_factory=set)
    _failure: bytes | None = None
    _stopped: bool = False

    def __repr__(self) -> str:
        """Short: Ray sends it along with the event of every call, and its head would fill with lists of jobs."""
        return f"QueueServer({len(self.jobs)} jobs)"

    def __post_init__(self) -> None:
        self.queue = JobQueue(self.jobs, self.max_losses, self.clock)
        self._by_key = {job.key: job for job in self.jobs}
        self._lives = Lives(self.clock)
        self._verdicts = Verdicts(self.queue, self.clock)
        self._words: dict[str, tuple[tuple[str, int], str]] = {}

    # asked by workers

    def begin(self, worker: str, place: Place, group: int | None = None) -> int:
        """Announce a process that starts; return its life, to be shown with every other call.

        ``group``: the size of a group that restarts as one, whose workers are named 0, 1, …: then only ``blame`` says
        which of them died, and those beyond the size are gone.
        """
        before = self._lives.get(worker)
        if before is not None:
            if not before.took:
                node = before.place.node
                self._verdicts.died_early(worker, node, self._lives.others_at_work(node))
            self._end(worker, suspect=group is None)
            if group is None and place.node == before.place.node:  # the machine lives: its process died by itself
                self._verdicts.convict_all(worker)
        for other in [name for name in self._lives if group is not None and int(name) >= group]:
            self._end(other, suspect=False)
            self._lives.remove(other)
        return self._lives.begin(worker, place)

    def take(self, worker: str, life: int) -> tuple[str, Job | None]:
        """Return (WORK, job), (WAIT, None) or (STOP, None); a process of an earlier life is told to stop."""
        found = self._lives.get(worker)
        if not self.beat(worker, life) or found is None or self.is_over():
            return STOP, None
        found.took = True
        self._verdicts.ready(worker)
        key = self.queue.take()
        if key is None:
            return WAIT, None
        self._lives.leases[key] = (worker, life)
        return WORK, self._by_key[key]

    def ready(self, worker: str, life: int) -> None:
        """Note that a process is ready that takes no jobs, as it helps another one with its own."""
        found = self._lives.get(worker)
        if self.beat(worker, life) and found is not None:
            found.took = True
            self._verdicts.ready(worker)

    def is_over(self) -> bool:
        """Return whether nobody gets a job any more."""
        return bool(self._stopped or self._failure or self._verdicts.given_up or self.queue.finished)

    def part(self, worker: str, life: int, mates: Sequence[str]) -> bool:
        """Note that a process ends; return whether its ``mates`` have ended, too."""
        found = self._lives.get(worker)
        if found is not None and found.number == life:
            found.over = True
        return not any(mate in self._lives.seen() for mate in mates)

    def beat(self, worker: str, life: int) -> bool:
        """Note that a process lives; return whether it may go on."""
        return self._lives.beat(worker, life)

    def hear(self, worker: str, life: int, key: str, words: str) -> None:
        """Note what a worker says about a job in its hands."""
        if self.beat(worker, life) and self._has(worker, life, key):
            self._words[key] = ((worker, life), words)

    def finish(self, worker: str, life: int, key: str) -> None:
        """Note that ``key`` is done; the word of a process whose life is over is checked by the driver."""
        self.beat(worker, life)
        found = self._lives.get(worker)
        if found is None or not self._has(worker, life, key):
            if not self.queue.is_done(key):
                self._doubtful.add(key)
            return
        self._lives.release(key)
        self._words.pop(key, None)
        self.queue.finish(key)
        self._verdicts.acquit(key)
        self._verdicts.finished(found.place.node)

    def postpone(self, worker: str, life: int, key: str) -> None:
        """Give a job back that somebody else is doing; it is handed out again a little later."""
        if self._has(worker, life, key):
            self._lives.release(key)
            self.queue.give_back(key, ELSEWHERE_SECONDS)

    def unfit(self, worker: str, life: int, key: str | None, reason: str) -> None:
        """Leave the machine of a worker out, which says that it cannot do the work."""
        if key is not None and self._has(worker, life, key):
            self._lives.release(key)
            self.queue.give_back(key)
        if (found := self._lives.get(worker)) is not None:
            self._verdicts.left_out[found.place.node] = reason

    def fail(self, failure: bytes, worker: str = "", life: int = 0) -> None:
        """Note an exception (``pack_failure``); the first one counts, and nobody gets a job any more."""
        self._failure = self._failure or failure
        for key in self._lives.held(worker, life):
            self._lives.release(key)

    # asked by the driver

    def lost(self, worker: str, life: int) -> None:
        """Note that ``life`` of a worker is over, whether its process knows it or not."""
        found = self._lives.get(worker)
        if found is not None and found.number == life:
            self._end(worker, suspect=True)

    def blame(self, workers: Sequence[str]) -> None:
        """Note that ``workers`` of a group died with what they had taken."""
        for key in [key for key, (holder, _) in self._lives.leases.items() if holder in workers]:
            self._verdicts.count_loss(key)

    def forget(self, worker: str) -> None:
        """Note that a worker is gone for good."""
        self._end(worker, suspect=True)
        self._lives.remove(worker)

    def settle(self, is_done: Mapping[str, bool]) -> None:
        """Decide doubtful jobs: done after all, or to be done again (unless somebody is at it already)."""
        for key, done in is_done.items():
            if key not in self._doubtful:
                continue
            self._doubtful.discard(key)
            if done:
                self._lives.leases.pop(key, None)
                self.queue.finish(key)
            elif key not in self._lives.leases:
                self.queue.give_back(key)

    def judge(self, guilty: Mapping[str, bool]) -> None:
        """Decide suspects: the worker died alone on a machine that lives (a fault), or went with its machine."""
        for key, fault in guilty.items():
            if fault:
                self._verdicts.convict(key)
            else:
                self._verdicts.acquit(key)

    def stop(self) -> None:
        """Hand out nothing any more."""
        self._stopped = True

    def state(self) -> QueueState:
        """Return what the driver needs to know."""
        self._lives.note_driver()
        return QueueState(
            done=self.queue.done,
            total=self.queue.total,
            ready=self.queue.ready,
            leased=len(self._lives.leases),
            blocked=self.queue.blocked,
            failure=self._failure,
            given_up=self._verdicts.given_up,
            doubtful=tuple(sorted(self._doubtful)),
            workers=self._lives.seen(),
            silent=self._lives.silent(),
            suspects=self._verdicts.old_suspects(),
            left_out=dict(self._verdicts.left_out),
            words={key: words for key, (holder, words) in self._words.items() if self._has(*holder, key)},
        )

    # within

    def _has(self, worker: str, life: int, key: str) -> bool:
        return self._lives.leases.get(key) == (worker, life)

    def _end(self, worker: str, *, suspect: bool) -> None:
        """End a life: what it had taken is doubtful; with ``suspect`` somebody must say who is at fault."""
        found = self._lives.get(worker)
        for key in self._lives.end(worker):
            self._doubtful.add(key)
            if suspect and found is not None:
                self._verdicts.suspect(key, worker, found.place.node)

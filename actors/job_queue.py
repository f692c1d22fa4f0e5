"""The queue of jobs: what may start now, who works on what, what is done, what was lost with its worker."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from actors.jobs import MAX_LOSSES, Job, MakePerform, Progress

WAIT = "wait"
WORK = "work"
STOP = "stop"


class JobQueue:
    """Jobs in the given order, each released once the jobs that it needs are done.

    Not thread-safe, knows nothing of Ray; a job whose worker died ``max_losses`` times is given up. Raises ValueError
    for keys that appear twice and for jobs that wait for each other in a circle.
    """

    def __init__(self, jobs: Iterable[Job], max_losses: int = MAX_LOSSES) -> None:
        needs = [(job.key, tuple(job.needs)) for job in jobs]
        self._order = {key: index for index, (key, _) in enumerate(needs)}
        self._keys = [key for key, _ in needs]
        if len(self._order) != len(self._keys):
            twice = next(key for key in self._order if self._keys.count(key) > 1)
            raise ValueError(f"job {twice!r} is queued twice")
        self._missing = {key: {need for need in wanted if need in self._order} for key, wanted in needs}
        self._waiting: dict[str, list[str]] = defaultdict(list)
        for key, wanted in self._missing.items():
            for need in wanted:
                self._waiting[need].append(key)
        self._ready = [index for index, key in enumerate(self._keys) if not self._missing[key]]
        self._done: set[str] = set()
        self._losses: dict[str, int] = defaultdict(int)
        self._max_losses = max_losses
        self._refuse_circles()

    def _refuse_circles(self) -> None:
        missing = {key: len(wanted) for key, wanted in self._missing.items()}
        reached = [key for key, count in missing.items() if not count]
        for key in reached:
            for waiting in self._waiting[key]:
                missing[waiting] -= 1
                if not missing[waiting]:
                    reached.append(waiting)
        if len(reached) < len(self._keys):
            circle = sorted(set(self._keys) - set(reached))
            raise ValueError(f"jobs wait for each other: {', '.join(circle[:5])}")

    @property
    def total(self) -> int:
        """Number of jobs."""
        return len(self._keys)

    @property
    def done(self) -> int:
        """Number of jobs done."""
        return len(self._done)

    @property
    def finished(self) -> bool:
        """Whether every job is done."""
        return len(self._done) == len(self._keys)

    def take(self) -> str | None:
        """Return the first job that may start now, or None."""
        while self._ready:
            key = self._keys[heapq.heappop(self._ready)]
            if key not in self._done:
                return key
        return None

    def finish(self, key: str) -> None:
        """Mark ``key`` as done and release the jobs that waited for it; a second call changes nothing."""
        if key in self._done:
            return
        self._done.add(key)
        for waiting in self._waiting[key]:
            self._missing[waiting].discard(key)
            if not self._missing[waiting]:
                heapq.heappush(self._ready, self._order[waiting])

    def give_back(self, key: str) -> None:
        """Put a job that was taken, and not done, back in its place."""
        if key not in self._done:
            heapq.heappush(self._ready, self._order[key])

    def count_loss(self, key: str) -> str | None:
        """Note that the worker of ``key`` died; return a one-line reason to give up once that happened too often."""
        self._losses[key] += 1
        if self._losses[key] < self._max_losses:
            return None
        return f"job {key} is given up: its worker died {self._losses[key]} time(s)"


@dataclass(frozen=True)
class QueueState:
    """What the driver learns when it asks: counts, a packed failure, a reason to give up, jobs of unknown fate."""

    done: int
    total: int
    failure: bytes | None
    given_up: str | None
    doubtful: tuple[str, ...]


@dataclass
class QueueServer:
    """The queue as the workers of one training run see it (a Ray actor; worker = rank in the worker group).

    A worker group restarts as a whole after a loss: what a rank, or a rank that no longer exists, had taken becomes
    doubtful, and the driver, who can look into the store, settles it.
    """

    queue: JobQueue
    _leases: dict[str, int] = field(default_factory=dict)
    _doubtful: set[str] = field(default_factory=set)
    _lives: dict[int, int] = field(default_factory=dict)
    _failure: bytes | None = None
    _given_up: str | None = None
    _stopped: bool = False

    def begin(self, rank: int, world_size: int) -> int:
        """Announce a worker that starts (again); return its life, to be shown with every ``take``."""
        lost = [key for key, holder in self._leases.items() if holder == rank or holder >= world_size]
        for key in lost:
            del self._leases[key]
            self._doubtful.add(key)
        self._lives[rank] = self._lives.get(rank, 0) + 1
        return self._lives[rank]

    def take(self, rank: int, life: int) -> tuple[str, str]:
        """Return (WORK, key), (WAIT, "") or (STOP, ""); a worker of an earlier life is told to stop."""
        if self._stopped or self._failure or self._given_up or self.queue.finished or self._lives.get(rank) != life:
            return STOP, ""
        key = self.queue.take()
        if key is None:
            return WAIT, ""
        self._leases[key] = rank
        return WORK, key

    def finish(self, key: str) -> None:
        """Note that ``key`` is done."""
        self._leases.pop(key, None)
        self._doubtful.discard(key)
        self.queue.finish(key)

    def fail(self, failure: bytes) -> None:
        """Note an exception (``pack_failure``); the first one counts, and nobody gets a job any more."""
        self._failure = self._failure or failure

    def blame(self, ranks: list[int]) -> None:
        """Note that the workers ``ranks`` died with what they had taken."""
        for key in [key for key, holder in self._leases.items() if holder in ranks]:
            self._given_up = self._given_up or self.queue.count_loss(key)

    def settle(self, is_done: dict[str, bool]) -> None:
        """Decide doubtful jobs: done after all, or to be done again."""
        for key, done in is_done.items():
            if key not in self._doubtful:
                continue
            self._doubtful.discard(key)
            if done:
                self.queue.finish(key)
            else:
                self.queue.give_back(key)

    def stop(self) -> None:
        """Hand out nothing any more."""
        self._stopped = True

    def state(self) -> QueueState:
        """Return what the driver needs to know."""
        return QueueState(
            self.queue.done, self.queue.total, self._failure, self._given_up, tuple(sorted(self._doubtful))
        )


def run_here(jobs: Iterable[Job], make_perform: MakePerform, on_progress: Progress) -> None:
    """Do all jobs in the calling process, in an order that respects their needs."""
    jobs = list(jobs)
    queue = JobQueue(jobs)
    by_key = {job.key: job for job in jobs}
    on_progress(0, queue.total)
    if not jobs:
        return
    perform = make_perform()
    while (key := queue.take()) is not None:
        perform(by_key[key])
        queue.finish(key)
        on_progress(queue.done, queue.total)

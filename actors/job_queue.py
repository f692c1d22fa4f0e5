"""The queue of jobs: what may start now, what is done, what was lost with its worker, what comes again later."""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from actors.jobs import MAX_LOSSES, Elsewhere, Job, MakePerform, Progress
from actors.words import OnWords, listening

ELSEWHERE_SECONDS = 1.0
"""After this time a job that somebody else was doing is asked for again."""


class JobQueue:
    """Jobs in the given order, each released once the jobs that it needs are done.

    Not thread-safe, knows nothing of Ray; a job whose worker died ``max_losses`` times is given up. Raises ValueError
    for keys that appear twice and for jobs that wait for each other in a circle.
    """

    def __init__(
        self, jobs: Iterable[Job], max_losses: int = MAX_LOSSES, clock: Callable[[], float] = time.monotonic
    ) -> None:
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
        self._blocked = len(self._keys) - len(self._ready)
        self._later: list[tuple[float, int]] = []
        self._done: set[str] = set()
        self._losses: dict[str, int] = defaultdict(int)
        self._max_losses = max_losses
        self._clock = clock
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

    @property
    def ready(self) -> int:
        """Number of jobs that may start now or, because somebody else does them, soon."""
        return len(self._ready) + len(self._later)

    @property
    def blocked(self) -> int:
        """Number of jobs that wait for others."""
        return self._blocked

    def take(self) -> str | None:
        """Return the first job that may start now, or None."""
        while self._later and self._later[0][0] <= self._clock():
            heapq.heappush(self._ready, heapq.heappop(self._later)[1])
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
                self._blocked -= 1

    def is_done(self, key: str) -> bool:
        """Return whether ``key`` is done."""
        return key in self._done

    def give_back(self, key: str, seconds: float = 0.0) -> None:
        """Put a job that was taken, and not done, back in its place, to be taken in ``seconds`` at the earliest."""
        if key in self._done:
            return
        if seconds:
            heapq.heappush(self._later, (self._clock() + seconds, self._order[key]))
        else:
            heapq.heappush(self._ready, self._order[key])

    def count_loss(self, key: str) -> str | None:
        """Note that the worker of ``key`` died; return a one-line reason to give up once that happened too often."""
        self._losses[key] += 1
        if self._losses[key] < self._max_losses:
            return None
        return f"job {key} is given up: its worker died {self._losses[key]} time(s)"


def run_here(jobs: Iterable[Job], make_perform: MakePerform, on_progress: Progress, on_words: OnWords) -> None:
    """Do all jobs in the calling process, in an order that respects their needs.

    A job that somebody else is doing (``Elsewhere``) is asked for again after the others.
    """
    jobs = list(jobs)
    queue = JobQueue(jobs)
    by_key = {job.key: job for job in jobs}
    on_progress(0, queue.total)
    if not jobs:
        return
    perform = make_perform()
    while not queue.finished:
        key = queue.take()
        if key is None:
            time.sleep(ELSEWHERE_SECONDS / 10)
            continue
        try:
            with listening(lambda key, words: on_words({key: words})):
                perform(by_key[key])
        except Elsewhere:
            queue.give_back(key, ELSEWHERE_SECONDS)
            continue
        queue.finish(key)
        on_progress(queue.done, queue.total)

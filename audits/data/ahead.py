"""Work that is begun before its result is asked for: a few threads, and a queue that never grows."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from audits.processors import usable_cpus

T = TypeVar("T")
R = TypeVar("R")
THREADS = 16  # at most, of a process


class Begun(Generic[R]):
    """Work on the way: ``tasks`` in the threads of this process, and ``finish``, which makes the result of it."""

    def __init__(self, tasks: Sequence[Future[None]], finish: Callable[[], R]) -> None:
        self.tasks = tasks
        self.finish = finish

    def result(self) -> R:
        """Wait for the tasks and return the result; the first failure, in their order, is raised."""
        try:
            for task in self.tasks:
                task.result()
        except BaseException:
            self.cancel()
            raise
        return self.finish()

    def cancel(self) -> None:
        """Drop the tasks that no thread has taken up yet."""
        for task in self.tasks:
            task.cancel()


def begun(work: Callable[[T], None], items: Iterable[T], finish: Callable[[], R]) -> Begun[R]:
    """Begin ``work`` of each item in the threads of this process."""
    pool = threads()
    return Begun([pool.submit(work, item) for item in items], finish)


def ahead(begin: Callable[[T], Begun[R]], items: Iterable[T], depth: int) -> Iterator[R]:
    """Yield the results of ``items``, in order, with up to ``depth`` of them begun before their turn.

    What is begun and not yet yielded is at most ``depth`` + 1 results; nothing is begun before the first is asked for,
    and what is left is dropped when the caller stops early.
    """
    waiting: deque[Begun[R]] = deque()
    try:
        for item in items:
            waiting.append(begin(item))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for left in waiting:
            left.cancel()


@functools.cache
def threads() -> ThreadPoolExecutor:
    """Return the threads that decode images in this process: as many as processors, up to ``THREADS``."""
    return ThreadPoolExecutor(min(THREADS, usable_cpus()), thread_name_prefix="decode")

"""Workers by name: the process that each of them is now, what it has taken, and its heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SILENT_SECONDS = 30.0
"""A worker that has not beaten for so long counts as hung: its job goes to another one, and it is killed."""
PAUSE_SECONDS = 5.0
"""The driver asks for the state ten times a second. After a longer pause the machine or the driver slept, and nobody
is called silent for that."""


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


@dataclass
class Life:
    """The last process of a worker: its number, when it beat, whether it ever asked for a job, whether it is over."""

    number: int
    place: Place
    beat: float
    idle_since: float
    took: bool = False
    over: bool = False


@dataclass
class Lives:
    """Workers by name, and their leases: job → (worker, number of the life that took it).

    Not thread-safe, knows nothing of Ray.
    """

    clock: Callable[[], float]
    leases: dict[str, tuple[str, int]] = field(default_factory=dict)
    _last: dict[str, Life] = field(default_factory=dict)
    _asked: float | None = None

    def __iter__(self) -> Iterator[str]:
        """Return the names of all workers, those whose life is over as well."""
        return iter(self._last)

    def get(self, worker: str) -> Life | None:
        """Return the last life of ``worker``, None if it never had one or is gone for good."""
        return self._last.get(worker)

    def begin(self, worker: str, place: Place) -> int:
        """Begin the next life of ``worker``; return its number."""
        before, now = self._last.get(worker), self.clock()
        self._last[worker] = Life(before.number + 1 if before else 1, place, now, now)
        return self._last[worker].number

    def beat(self, worker: str, life: int) -> bool:
        """Note that a process lives; return whether it may go on."""
        found = self._last.get(worker)
        if found is None or found.number != life or found.over:
            return False
        found.beat = self.clock()
        return True

    def held(self, worker: str, life: int) -> list[str]:
        """Return what a life has taken and not given back."""
        return [key for key, holder in self.leases.items() if holder == (worker, life)]

    def release(self, key: str) -> None:
        """End the lease of ``key``, whose holder has nothing to do from now on."""
        worker, _ = self.leases.pop(key)
        if worker in self._last:
            self._last[worker].idle_since = self.clock()

    def end(self, worker: str) -> list[str]:
        """End the life of ``worker``; return what it had taken."""
        found = self._last.get(worker)
        if found is None:
            return []
        found.over = True
        held = self.held(worker, found.number)
        for key in held:
            del self.leases[key]
        return held

    def remove(self, worker: str) -> None:
        """Forget a worker that is gone for good."""
        self._last.pop(worker, None)

    def note_driver(self) -> None:
        """Note that the driver asks; after a pause all count as having beaten just now."""
        now = self.clock()
        if self._asked is not None and now - self._asked > PAUSE_SECONDS:
            for life in self._last.values():
                life.beat = now
        self._asked = now

    def seen(self) -> dict[str, Seen]:
        """Return the workers that live, as the driver sees them."""
        now = self.clock()
        busy = {worker for worker, _ in self.leases.values()}
        return {
            name: Seen(life.number, life.place, name in busy, 0.0 if name in busy else now - life.idle_since)
            for name, life in self._last.items()
            if not life.over
        }

    def silent(self) -> tuple[str, ...]:
        """Return those of them that have not beaten for a while."""
        now = self.clock()
        return tuple(name for name, life in self._last.items() if not life.over and now - life.beat > SILENT_SECONDS)

    def others_at_work(self, node: str) -> bool:
        """Return whether a worker on another machine than ``node`` was ever ready."""
        return any(life.took and life.place.node != node for life in self._last.values())

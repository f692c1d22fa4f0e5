"""What the pools know of their work: keys, dependencies, a callable, and how many workers of which size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from audits.errors import BadInput

MAX_LOSSES = 3
"""A job (or unit) whose worker died this often is given up."""


class Job(Protocol):
    """One piece of work: ``needs`` are keys of jobs that must be done before; keys that nobody queued count as done."""

    @property
    def key(self) -> str:
        """The name of the job, unique in its queue."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the jobs whose results this one reads."""


Perform = Callable[[Job], None]
"""Does a job and puts its result where later jobs find it; raises on failure."""

MakePerform = Callable[[], Perform]
"""Called once in each worker process, for example to open the store and load the data; pickled by reference."""

Progress = Callable[[int, int], None]
"""Called in the calling thread with (jobs done, jobs in all)."""


class WorkersLost(RuntimeError):
    """The work cannot go on: a job killed its worker too often, or no worker is left (one line, names the log)."""


@dataclass(frozen=True)
class Workers:
    """How many workers, of which size, and where.

    ``count`` 0 means: in the calling process, without Ray. ``cpus`` and ``gpus`` are per worker (GPUs may be a fraction
    up to 1, or whole numbers), ``threads`` the number of computing threads in each worker process. ``address`` joins a
    running Ray cluster; None starts a private one on this machine. ``storage`` is the folder for Ray's own files (with
    an address: a folder or URI that every node reaches), ``log`` the file that messages tell the user to read.
    """

    count: int
    cpus: float = 1.0
    gpus: float = 0.0
    threads: int = 1
    address: str | None = None
    storage: str = ".orch/ray"
    log: str = ""

    def __post_init__(self) -> None:
        if self.count < 0:
            raise BadInput(f"workers = {self.count}: give 0 (no Ray) or a positive number")
        if self.cpus <= 0:
            raise BadInput(f"cpus per worker = {self.cpus}: give a positive number")
        if self.gpus < 0 or (self.gpus > 1 and self.gpus != int(self.gpus)):
            raise BadInput(f"gpus per worker = {self.gpus}: give a fraction between 0 and 1, or a whole number")
        if self.threads < 1:
            raise BadInput(f"threads per worker = {self.threads}: give 1 or more")

    def see_log(self) -> str:
        """Return ``" (see LOG)"``, or nothing when no log is named."""
        return f" (see {self.log})" if self.log else ""

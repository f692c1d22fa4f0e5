"""Jobs as the pools see them: keys, dependencies, a callable, and how many workers of which size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

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

MakePerform = Callable[..., Perform]
"""Called once in each worker process, for example to open the store and load the data; pickled by reference.

Where workers train a model together it is given the ``Team``, whose first worker is handed jobs; it tells the others
those for which it needs them (``Team.from_first``), and they are given these.
"""

Progress = Callable[[int, int], None]
"""Called in the calling thread with (jobs done, jobs in all)."""


Engine = Literal["train", "actors"]
"""Who hosts the workers: one Ray Train group, or plain Ray actors."""

Tell = Callable[[str], None]
"""Called in the calling thread with a line for the user: what is waited for, what was lost."""


class Elsewhere(Exception):
    """somebody else is doing this job: it is asked for again later"""


class Unfit(Exception):
    """This machine cannot do the work (one line that says why): it is left out, its job goes to another one."""


class WorkersLost(RuntimeError):
    """The work cannot go on: a job killed its worker too often, or no worker is left (one line)."""


@dataclass(frozen=True)
class Workers:
    """How many workers, of which size, and where.

    ``count`` 0 means: in the calling process, without Ray; on a joined cluster it is the most there may be at a time,
    and work starts with the first. ``cpus`` and ``gpus`` are per worker (GPUs may be a fraction up to 1, or whole
    numbers), ``threads`` the number of computing threads in each worker process. ``address`` joins a running Ray
    cluster; None starts a private one on this machine. ``engine``: a Ray Train group (``train``), which restarts as
    one, or plain actors (``actors``), each for itself. ``head``: whether workers may be placed on the cluster's head
    when it has no GPU. ``storage`` is the folder for Ray's own files (with an address: a folder or URI that every node
    reaches). ``per_model``: so many workers of a group train a model together.
    """

    count: int
    cpus: float = 1.0
    gpus: float = 0.0
    threads: int = 1
    address: str | None = None
    engine: Engine = "train"
    head: bool = False
    storage: str = ".orch/ray"
    per_model: int = 1

    def __post_init__(self) -> None:
        if self.count < 0:
            raise BadInput(f"workers = {self.count}: give 0 (no Ray) or a positive number")
        if self.cpus <= 0:
            raise BadInput(f"cpus per worker = {self.cpus}: give a positive number")
        if self.gpus < 0 or (self.gpus > 1 and self.gpus != int(self.gpus)):
            raise BadInput(f"gpus per worker = {self.gpus}: give a fraction between 0 and 1, or a whole number")
        if self.per_model < 1 or self.count % self.per_model:
            raise BadInput(f"{self.per_model} workers per model do not divide {self.count}; give a multiple of them")
        if self.threads < 1:
            raise BadInput(f"threads per worker = {self.threads}: give 1 or more")

    @property
    def fewest(self) -> str:
        """Words for that not so many workers fit as can do anything: none, or not those of one model."""
        return f"no worker with {self.size}" if self.per_model == 1 else f"no {self.per_model} workers with {self.size}"

    @property
    def size(self) -> str:
        """One worker, in words."""
        return f"{self.cpus:g} CPU{'s' * (self.cpus != 1)}" + (
            f", {self.gpus:g} GPU{'s' * (self.gpus > 1)}" if self.gpus else ""
        )

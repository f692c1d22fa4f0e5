"""Room on a GPU that several workers share: where it does not suffice beside others, a job is done alone.

Every job holds two locks on files of this machine's temporary folder, one after the other: the gate for a moment, the
room, together with others, for as long as it lasts. Whoever finds no memory waits at the gate until the room is empty,
and nobody else comes in. Locks of a process that dies are free.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from audits.memory import give_back, out_of_memory
from audits.writing import CannotWrite, opened_to_lock

if TYPE_CHECKING:
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.kind import Stage

R = TypeVar("R")


class OutOfMemory(RuntimeError):
    """A job that found no memory even alone on its device: one line says which, how much it asked, and what helps."""


def with_room(device: str, work: Callable[[], R], forget: Callable[[], None]) -> R:
    """Return ``work()``; on a GPU on which it finds no memory beside others, it is done again without them.

    ``forget`` lets go of what this process keeps on the GPU. On a CPU there is one attempt: its memory is not shared
    out, and what takes too much of it is ended by the system.
    """
    if not device.startswith("cuda"):
        return work()
    place = lock_names(device)
    with held(place, alone=False):
        try:
            return work()
        except Exception as error:
            if not out_of_memory(error):
                raise
        finally:
            if waited_for(place):
                forget()
                give_back()
    forget()
    give_back()
    with held(place, alone=True):
        return work()


def no_room(stage: Stage, job: Job, device: str, plan: Any, error: Exception) -> str:
    """Return the one line about a job that found no memory: which, what it asked for, what helps."""
    asked = ". ".join(str(error).split(". ")[:2]).strip() or type(error).__name__
    found = "even alone on its GPU" if device.startswith("cuda") else "in this machine"
    if stage.makes == "model":
        advice = f"lower the batch size (recipe.batch_size is {plan.recipe.batch_size})"
    else:
        advice = "it was down to single points and models"
    name = f"{job.stage} {job.member or job.label} ({job.key[:12]})"
    return (
        f"out of memory: {name} did not fit {found}: {asked}; {advice}, "
        "or take a smaller model, smaller points or a device with more memory; finished models are kept"
    )


def lock_names(device: str) -> tuple[Path, Path]:
    """Return the files of gate and room of this user's jobs on ``device``."""
    import torch

    found = torch.cuda.get_device_properties(device)
    name = f"orch-{os.getuid()}-gpu-{getattr(found, 'uuid', found.name)}".replace("/", "-").replace(" ", "-")
    return tuple(Path(tempfile.gettempdir(), f"{name}.{part}") for part in ("gate", "room"))  # type: ignore[return-value]  # two


@contextmanager
def held(place: tuple[Path, Path], *, alone: bool) -> Iterator[None]:
    """Hold the room, alone or together with others."""
    gate, room = (opened(file) for file in place)
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield
    finally:
        os.close(room)
        os.close(gate)


def waited_for(place: tuple[Path, Path]) -> bool:
    """Say whether somebody waits at the gate to be alone."""
    gate = opened(place[0])
    try:
        fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(gate)
    return False


def opened(file: Path) -> int:
    """Open a lock's file; raises CannotWrite for that of another user, who could hold it for ever."""
    handle = opened_to_lock(file)
    if os.fstat(handle).st_uid != os.geteuid():
        os.close(handle)
        raise CannotWrite(errno.EPERM, "it belongs to another user", str(file))
    return handle

"""Jobs that workers do together: sums over them, written by the first one (for tests of actors/)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import torch
import torch.distributed as dist

from actors.jobs import Job, Perform
from audits.training.team import Team
from tests.actors.file_jobs import OddError
from tests.cases.ports import listening

ROUNDS = 50


@dataclass(frozen=True)
class TeamJob:
    """Writes ``folder/done/key``, the sum of the ranks of a team, ``ROUNDS`` times; ``action``: what goes wrong.

    ``alone``: the first worker does it without the others.
    """

    key: str
    folder: str
    needs: tuple[str, ...] = ()
    action: str = ""
    alone: bool = False


def make_perform(team: Team) -> Perform:
    """Return what does a ``TeamJob`` in one of its workers."""

    def perform(job: Job) -> None:
        assert isinstance(job, TeamJob)
        if team.leads and not job.alone:
            team.from_first(job)
        folder = Path(job.folder)
        first = began(folder, job, team) == 1
        total = torch.zeros(1)
        for round_ in range(1 if job.alone else ROUNDS):
            if round_ == ROUNDS // 2:
                act(job, team, first)
            own = torch.full((1,), float(team.rank + 1))
            if not job.alone:
                dist.all_reduce(own, group=team.group)
            total += own
        if team.leads:
            ports = sorted({host for host, _ in listening([os.getpid()])})
            finish(folder / "done" / job.key, f"{float(total):g} {' '.join(ports)}")

    return perform


def began(folder: Path, job: TeamJob, team: Team) -> int:
    """Note that a worker has begun a job; return how often it has."""
    (folder / "starts").mkdir(parents=True, exist_ok=True)
    (folder / "starts" / f"{job.key}@{team.rank}@{uuid4().hex}").touch()
    return starts(folder, job.key, team.rank)


def starts(folder: Path, key: str, rank: int) -> int:
    """Return how often the worker ``rank`` of a team began a job."""
    return len(list((folder / "starts").glob(f"{key}@{rank}@*")))


def act(job: TeamJob, team: Team, first: bool) -> None:
    """Do what ``job.action`` names."""
    actions: dict[str, Callable[[], bool]] = {
        "second dies once": lambda: first and not team.leads,
        "first dies": lambda: team.leads,
        "second fails": lambda: not team.leads,
        "first fails": lambda: team.leads,
        "all fail": lambda: True,
        "second hangs once": lambda: first and not team.leads,
        "": lambda: False,
    }
    if not actions[job.action]():
        return
    if "dies" in job.action:
        os.kill(os.getpid(), signal.SIGKILL)
    if "hangs" in job.action:
        os.kill(os.getpid(), signal.SIGSTOP)
    raise OddError(7, f"said worker {'' if job.action == 'all fail' else team.rank}")


def finish(file: Path, text: str) -> None:
    """Write a file that is whole whenever it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid4().hex}")
    temporary.write_text(text)
    temporary.rename(file)

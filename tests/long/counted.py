"""``orch`` whose workers note when a job begins and when its result lies in the store, in a file that a test reads.

Started by ``counted(ARGUMENTS)``; jobs take ``PAUSE`` seconds longer, so that faults find some at work. Pages and
tracking, which take longer than all the rest of a small run, are left out where no fault concerns them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orchestrator.engine.run.crew as crew
import orchestrator.engine.run.run as engine
from orchestrator.cli.main import main as orch
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.worker import OpenContexts, WorkerContext

NOTES = "ORCH_TEST_NOTES"
PAGE = "ORCH_TEST_PAGE"
PAUSE = 0.4
STARTED = "started"


@dataclass(frozen=True)
class Note:
    """``word`` begin or end of the job ``stage``/``key`` at ``time`` (of ``time.time``) in process ``pid``."""

    time: float
    pid: int
    word: str
    stage: str
    key: str


def note(word: str, stage: str = "-", key: str = "-") -> None:
    """Append a line, in one write."""
    line = f"{time.time():.3f} {os.getpid()} {word} {stage} {key}\n".encode()
    handle = os.open(os.environ[NOTES], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def notes(file: Path) -> list[Note]:
    """Return what was noted."""
    rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [Note(float(at), int(pid), word, stage, key) for at, pid, word, stage, key in rows]


class CountedContext(WorkerContext[Any]):
    def perform(self, job: Job) -> None:
        note("begin", job.stage, job.key)
        time.sleep(PAUSE)
        super().perform(job)
        note("end", job.stage, job.key)


class CountedContexts(OpenContexts):
    def open(self, plan_hash: str, lately: Recent | None = None) -> WorkerContext[Any]:
        context = super().open(plan_hash, lately)
        context.__class__ = CountedContext
        return context


class CountedRun(engine.Run):
    def report(self, document: Mapping[str, Any]) -> None:
        """Draw the page only where the run shall be disturbed in that."""
        if os.environ.get(PAGE) == "1":
            super().report(document)

    def track(self, document: dict[str, Any]) -> None:
        """Log only to a server that is named."""
        if self.plan.tracking.uri:
            super().track(document)


def main() -> int:
    """Carry out the command line."""
    note(STARTED)
    crew.OpenContexts = CountedContexts  # type: ignore[attr-defined]
    engine.Run = CountedRun  # type: ignore[misc]
    return orch(sys.argv[1:])


def counted(*arguments: str) -> list[str]:
    """Return the command."""
    return [sys.executable, "-c", "import sys; from tests.long.counted import main; sys.exit(main())", *arguments]

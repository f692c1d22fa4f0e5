"""Tracking while a run goes on: its parent is open, jobs are counted, and settings are logged as they finish.

All of it happens in a thread beside the run, which neither waits for it nor fails by it; what is missing at the end is
logged then, from the run's files.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.standing import Standing
from orchestrator.engine.run.tracking import OpenRun, open_run, status_after
from orchestrator.engine.run.tracking_server import reached, settle_environment
from orchestrator.engine.run.tracking_uri import resolve_uri
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store

if TYPE_CHECKING:
    from orchestrator.engine.run.console import Terminal

LOOK_SECONDS = 10.0
"""Between two looks at what is done."""

GRACE_SECONDS = 10.0
"""For which the end of a run waits for what a server is being told just then; importing MLflow does not count.

A database is waited for until it is made, unless the run breaks off: the end needs it as well.
"""


class LiveTracking:
    """Tracks one run from ``begin`` to ``stop``; as a context, it says how a run that does not come so far ended."""

    def __init__(self, kind: Kind, name: str, plan: BasePlan, out: Path, store: Store, terminal: Terminal) -> None:
        self.kind = kind
        self.name = name
        self.plan = plan
        self.out = out
        self.store = store
        self.terminal = terminal
        self.thread: threading.Thread | None = None
        self.ready = threading.Event()
        self.over = threading.Event()
        self.where = ""
        self.status = ""
        self.abandoned = False

    def __enter__(self) -> None:
        """Do nothing yet: a run that has nothing to do is logged at its end only."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the parent of a run that did not reach its end."""
        self.stop(status_after(error) if error else "FINISHED")

    def begin(self, settings: Sequence[Setting], left: Sequence[Sequence[Job]]) -> None:
        """Begin to track ``settings``, of which the jobs ``left`` (per setting) are to be done."""
        self.where = resolve_uri(self.plan.tracking.uri, self.out)
        settle_environment()  # here: another thread may be copying the environment
        standing = Standing(self.store, settings, left)
        self.thread = threading.Thread(target=self._track, args=(standing,), name="orch-tracking", daemon=True)
        self.thread.start()

    def stop(self, status: str = "") -> None:
        """Stop tracking; without ``status`` the parent stays open, for what is logged at the end."""
        if self.thread is None:
            return
        self.status = status
        self.over.set()
        if not status:
            self.ready.wait()  # importing MLflow, which the end needs as well
        self.thread.join(GRACE_SECONDS if status or self.where.startswith("http") else None)
        self.abandoned = self.thread.is_alive()
        self.thread = None

    def _track(self, standing: Standing) -> None:
        """Track until the run is over; the thread's body."""
        try:
            with reached(self.where, "the run goes on", self.ready.set):
                if self.over.is_set():
                    return
                plan, experiment = self.plan.resolved(), self.plan.tracking.experiment
                parent = open_run(self.kind.name, self.name, plan, self.out, self.where, experiment)
                if self.abandoned:  # a slow server made it after the run had ended
                    parent.end(self.status or "KILLED")
                    return
                parent.log_params()
                several = len(standing.open) > 1
                while not self.over.is_set():
                    self._look(standing, parent, several)
                    self.over.wait(LOOK_SECONDS)
                if self.status:
                    parent.end(self.status)
                else:
                    parent.log_parent(standing.numbers(over=True))
        except Exception as error:  # whatever it is, the run goes on without; its end logs all, or says why not
            if self.terminal.log:
                with self.terminal.log.open("a", encoding="utf-8") as log:
                    log.write(f"tracking while the run goes on has ended: {type(error).__name__}: {error}\n")
        finally:
            self.ready.set()

    def _look(self, standing: Standing, parent: OpenRun, several: bool) -> None:
        """Log how many jobs are done, and each setting of several that is done since the last look."""
        finished = standing.look()
        parent.log_parent(standing.numbers())
        for setting in finished if several else ():
            if self.over.is_set():
                return
            parent.log_child(setting.name, setting.overrides, self.kind.comparison(setting, self.store))

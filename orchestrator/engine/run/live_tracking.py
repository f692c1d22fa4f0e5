"""Tracking while a run goes on: its parent is open, jobs are counted, and settings are logged as they finish.

All of it happens in a thread of its own, which nothing waits for but the end of the run, and not for long; what is
missing at the end is logged then, from the run's files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.progress import LOOK_SECONDS, Look
from orchestrator.engine.run.search_result import TrialNews
from orchestrator.engine.run.tracking import OpenRun, open_run, status_after
from orchestrator.engine.run.tracking_server import reached, settle_environment
from orchestrator.engine.run.tracking_stopped import ALL_KEPT, Kept, Subject
from orchestrator.engine.run.tracking_uri import resolve_uri
from orchestrator.engine.setting import Setting

GRACE_SECONDS = 10.0
"""For which the end of a run waits for what a server is being told just then; importing MLflow does not count.

A database is waited for until it is made, unless the run breaks off: the end needs it as well.
"""


class LiveTracking:
    """Tracks the run ``name`` from ``begin`` to ``stop``; ``log(text)`` takes what went wrong."""

    def __init__(
        self,
        kind: Kind,
        name: str,
        plan: BasePlan,
        out: Path,
        log: Callable[[str], None],
        kept: Kept = ALL_KEPT,
    ) -> None:
        self.kind = kind
        self.name = name
        self.plan = plan
        self.out = out
        self.log = log
        self.kept = kept
        self.thread: threading.Thread | None = None
        self.ready = threading.Event()
        self.over = threading.Event()
        self.news = threading.Event()
        self.overrides: dict[str, Mapping[str, Any]] = {}
        self.look: Look | None = None
        self.compared: Mapping[str, Mapping[str, float]] = {}
        self.trials: Sequence[TrialNews] = ()
        self.where = ""
        self.status = ""
        self.abandoned = False

    def know(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Take settings (name → what they change) that the run has beside those which it begins with."""
        self.overrides |= settings

    def begin(self, settings: Sequence[Setting]) -> None:
        """Begin to track, or go on with another part of the run; each of ``settings`` that is compared gets a child."""
        self.overrides |= {setting.name: setting.overrides for setting in settings}
        if self.thread is not None:
            return
        self.where = resolve_uri(self.plan.tracking.uri, self.out)
        plan = self.plan.resolved()
        known, stand_ins = dict(self.overrides), self.kind.stand_ins
        self.subject = Subject(self.kind.name, self.name, plan, self.plan.plan_hash, known, self.kept, stand_ins)
        settle_environment()  # here: another thread may be copying the environment
        self.thread = threading.Thread(target=self._track, name="orch-tracking", daemon=True)
        self.thread.start()

    def hear(self, look: Look | None, trials: Sequence[TrialNews] = ()) -> None:
        """Take what is to be logged, in place of what has not been yet: a look, and trials so far (none: as before).

        Settings that the look compares are logged as such, unless there are trials, which are these settings.
        """
        if look is not None:
            self.look = look
            self.compared = {} if trials else look.compared
        self.trials = trials or self.trials
        self.news.set()

    def stop(self, error: BaseException | None = None) -> None:
        """Stop tracking; the parent stays open for what is logged at the end, unless the run broke off by ``error``."""
        if self.thread is None:
            return
        self.status = status_after(error) if error else ""
        self.over.set()
        self.news.set()
        if not error:
            self.ready.wait()  # importing MLflow, which the end needs as well
        self.thread.join(GRACE_SECONDS if error or self.where.startswith("http") else None)
        self.abandoned = self.thread.is_alive()
        self.thread = None

    def _track(self) -> None:
        """Track until the run is over; the thread's body."""
        try:
            with reached(self.where, "the run goes on", self.ready.set):
                if self.over.is_set():
                    return
                tracking = self.plan.tracking
                parent = open_run(self.subject, self.out, self.where, tracking.experiment, named=tracking.uri)
                if self.abandoned:  # a slow server made it after the run had ended
                    parent.end(self.status or "KILLED")
                    return
                parent.log_params()
                logged: set[str] = set()
                tried: dict[int, TrialNews] = {}
                while not self.over.is_set():
                    if self.news.wait(LOOK_SECONDS) and not self.over.is_set():
                        self.news.clear()
                        if self.look:
                            parent.log_parent(self.look.metrics())
                        self._log_trials(parent, tried)
                        self._log_compared(parent, logged)
                if self.status:
                    parent.end(self.status)
                elif self.look:
                    parent.log_parent(self.look.metrics(over=True))
        except Exception as error:  # whatever it is, the run goes on without; its end logs all, or says why not
            self.log(f"tracking of the unfinished run has stopped: {type(error).__name__}: {error}")
        finally:
            self.ready.set()

    def _log_compared(self, parent: OpenRun, logged: set[str]) -> None:
        """Log each setting that was compared and is not among those ``logged``."""
        for name, numbers in self.compared.items():
            if self.over.is_set():
                return
            if name not in logged:
                parent.log_child(name, self.overrides[name], numbers)
                logged.add(name)

    def _log_trials(self, parent: OpenRun, tried: dict[int, TrialNews]) -> None:
        """Log what is new of each trial since it was ``tried``."""
        for trial in self.trials:
            if self.over.is_set():
                return
            if trial != tried.get(trial.number):
                parent.log_trial(trial, tried.get(trial.number))
                tried[trial.number] = trial

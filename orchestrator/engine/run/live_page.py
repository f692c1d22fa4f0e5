"""The page of a run that is not finished: ``report.html`` until the true report takes its place.

A page beside the ``result.json`` of an earlier run stays that run's report. A page that cannot be written costs a line
in the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from audits.credentials import hide
from audits.writing import write_whole
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.progress import Look, Phase, Progress, SettingProgress, StageProgress, now
from orchestrator.engine.run.output_folder import REPORT_FILE, RESULT_FILE

LONGEST_CAUSE = 300  # characters


class LivePage:
    """The page of the run ``name`` in ``out``, written by two threads: by looks, and by what the run itself comes to.

    ``log(text)`` takes what went wrong.
    """

    def __init__(self, kind: Kind, name: str, plan: BasePlan, out: Path, log: Callable[[str], None]) -> None:
        self.kind = kind
        self.out = out
        self.log = log
        begin = now()
        self.progress = Progress(name, kind.name, plan.resolved(), "running", begin, begin)
        self.lock = threading.Lock()
        self.begun = False
        self.closed = False
        self.result_is_ours = False
        self.what = ""
        self.moved: dict[tuple[str, int], tuple[float, int]] = {}

    def going_on(self, look: Look) -> None:
        """Show what a look saw; nothing happens once the work is over."""
        stages = tuple(
            StageProgress(stage, look.done[stage], needed, self._left(stage, look))
            for stage, needed in look.needed.items()
        )
        settings = tuple(
            SettingProgress(name, done, needed, look.compared.get(name, {}))
            for name, (done, needed) in look.settings.items()
        )
        with self.lock:
            if self.progress.phase == "running" and not self.closed:
                self.begun = True
                shown = settings if len(settings) > 1 else ()
                latest = replace(self.progress, what=self.what, looked=look.at, stages=stages, settings=shown)
                self._show(latest)

    def summing_up(self) -> None:
        """Show that every job is done and the report comes next."""
        with self.lock:
            stages = tuple(replace(each, done=each.needed, left=None) for each in self.progress.stages)
            settings = tuple(replace(each, done=each.needed) for each in self.progress.settings)
            latest = replace(self.progress, phase="summing up", looked=now(), stages=stages, settings=settings)
            if self.begun:
                self._show(latest)

    def result_written(self) -> None:
        """Take note that result.json is this run's own from now on."""
        self.result_is_ours = True

    def report_written(self) -> None:
        """Take note that the report is there: nothing is written any more."""
        with self.lock:
            self.closed = True

    def finished(self, numbers: Mapping[str, Mapping[str, float]]) -> None:
        """Show the ``numbers`` of each setting of a finished run that has no other report."""
        sizes = {each.name: each.needed for each in self.progress.settings}
        settings = tuple(
            SettingProgress(name, sizes.get(name, 0), sizes.get(name, 0), each) for name, each in numbers.items()
        )
        with self.lock:
            self.result_is_ours = self.closed = True
            self._show(replace(self.progress, phase="finished", looked=now(), settings=settings))

    def stopped(self, error: BaseException) -> None:
        """Show that the run ended by ``error``, unless its report is there or it had not begun."""
        with self.lock:
            if not self.closed and (self.begun or self.result_is_ours):
                stages = tuple(replace(each, left=None) for each in self.progress.stages)
                phase: Phase = "unreported" if self.result_is_ours else "stopped"
                latest = replace(self.progress, phase=phase, looked=now(), stages=stages, cause=cause_of(error))
                self._show(latest)
            self.closed = True

    def _left(self, stage: str, look: Look) -> float | None:
        """Return the seconds that a stage still takes at its pace since it first moved."""
        done, needed = look.done[stage], look.needed[stage]
        begin, before = self.moved.setdefault((stage, needed), (look.at, done))
        if done == before:
            self.moved[stage, needed] = (look.at, done)  # not yet: workers are being started, say
            return None
        return (look.at - begin) / (done - before) * (needed - done) if done < needed else None

    def _show(self, progress: Progress) -> None:
        """Write the page, whole, unless it belongs to the result of an earlier run."""
        self.progress = progress
        try:
            if (self.out / RESULT_FILE).exists() and not self.result_is_ours:
                return
            write_whole(self.out / REPORT_FILE, self.kind.open_page().in_progress(progress).encode(), private=True)
        except Exception as error:  # whatever it is, the run goes on without a page
            self.log(f"the page of the unfinished run could not be written: {type(error).__name__}: {error}")


def cause_of(error: BaseException) -> str:
    """Return in one short line what ended a run."""
    if isinstance(error, KeyboardInterrupt):
        return "Ctrl-C"
    text = next(iter(hide(str(error)).strip().splitlines()), "")[:LONGEST_CAUSE]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

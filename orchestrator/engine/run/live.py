"""News of a run while it goes on: one thread looks at what is done, the page and the tracker are told.

The run neither waits for the thread nor fails by it. The tracker has a thread of its own: a server that hangs does not
hold the page back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from audits.credentials import hide
from audits.writing import opened_to_append
from orchestrator.engine.kind import Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.progress import LOOK_SECONDS, Look
from orchestrator.engine.run.live_page import LivePage
from orchestrator.engine.run.live_tracking import LiveTracking
from orchestrator.engine.run.search_result import TrialNews, look_at
from orchestrator.engine.run.standing import Left, Standing
from orchestrator.engine.run.tracking_stopped import ALL_KEPT, Kept
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store

if TYPE_CHECKING:
    from orchestrator.engine.run.console import Terminal

GRACE_SECONDS = 10.0
"""For which a run that ends waits for a look at the store that is going on just then."""

Compare = Callable[[Setting, Store], Mapping[str, float]]
"""Returns the numbers by which settings are compared, of one of which every job is done."""

Trials = Callable[[Look], Sequence[TrialNews]]
"""Returns the settings that a look compares as trials, by which the tracker knows them."""


class Live:
    """Watches one run from ``begin`` on; as a context, it says how a run that does not come to its end was stopped."""

    def __init__(
        self,
        kind: Kind,
        name: str,
        plan: BasePlan,
        out: Path,
        store: Store,
        terminal: Terminal,
        kept: Kept = ALL_KEPT,
    ) -> None:
        out = out.absolute()  # threads write there while another one has the working folder elsewhere
        self.store = store
        self.terminal = terminal
        self.page = LivePage(kind, name, plan, out, self.log)
        self.tracking = LiveTracking(kind, name, plan, out, self.log, kept)
        self.thread: threading.Thread | None = None
        self.over = threading.Event()
        self.said: set[str] = set()
        self.trials: Trials | None = None
        self.begun = False

    def __enter__(self) -> None:
        """Do nothing yet: a run that has nothing to do is told of at its end only."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say that the run broke off, if it did."""
        self.over.set()
        if error:
            self.page.stopped(error)
        self.tracking.stop(error)
        self.halt()

    def know(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Tell the tracker, before ``begin``, of settings (name → what they change) that it may have of this run."""
        self.tracking.know(settings)

    def begin(
        self,
        settings: Sequence[Setting],
        left: Left,
        compare: Compare,
        *,
        tracked: bool,
        what: str = "",
        trials: Trials | None = None,
    ) -> None:
        """Watch ``settings``, of which the jobs ``left`` (per setting) are to be done, until the next ``begin``.

        ``tracked``: the tracker is told as well, of ``trials`` where the settings are such; ``what``: words for this
        work, if the run has more of it.
        """
        self.halt()
        self.trials = trials
        self.begun = True
        self.page.what = what
        if tracked:
            self.tracking.begin(settings)
        self.over = threading.Event()
        standing = Standing(self.store, settings, left)
        body = (self.over, standing, compare if len(settings) > 1 else None)
        self.thread = threading.Thread(target=self._watch, args=body, name="orch-watching", daemon=True)
        self.thread.start()

    def hear_trials(self, trials: Sequence[TrialNews], samples: int, parts: int) -> None:
        """Tell page and tracker of the trials of a search so far, of ``samples``, each of ``parts`` parts."""
        if self.begun:
            self.halt()
            look = look_at(trials, samples, parts)
            self.page.going_on(look)
            self.tracking.hear(look, trials)

    def tell_trials(self, trials: Sequence[TrialNews]) -> None:
        """Tell the tracker of settings that were tried, all that there are."""
        if self.begun:
            self.halt()
            self.tracking.hear(None, trials)

    def summing_up(self) -> None:
        """Say that all jobs are done."""
        self.over.set()
        self.page.summing_up()

    def halt(self) -> None:
        """End the watching."""
        self.over.set()
        if self.thread is not None:
            self.thread.join(GRACE_SECONDS)
            self.thread = None

    def log(self, text: str) -> None:
        """Write a line into the run's log, once; a log that cannot be written costs the line."""
        if self.terminal.log and text not in self.said:
            self.said.add(text)
            with suppress(OSError), open(opened_to_append(self.terminal.log), "a", encoding="utf-8") as log:
                log.write(f"{hide(text)}\n")

    def _watch(self, over: threading.Event, standing: Standing, compare: Compare | None) -> None:
        """Look at what is done until the work is over; the thread's body."""
        compared: dict[str, Mapping[str, float]] = {}
        self._tell(standing, compared)
        while not over.is_set():
            try:
                finished = standing.look()
                self._tell(standing, compared)
            except Exception as error:  # a store that does not answer, say: the run meets it itself
                self.log(f"progress could not be read: {type(error).__name__}: {error}")
                finished = []
            for setting in finished:
                if over.is_set():
                    return
                if compare:
                    self._compare(setting, compare, compared)
                    self._tell(standing, compared)
            over.wait(LOOK_SECONDS)

    def _compare(self, setting: Setting, compare: Compare, compared: dict[str, Mapping[str, float]]) -> None:
        """Add the numbers of a setting; those of one that cannot be read come at the end, if at all."""
        try:
            compared[setting.name] = compare(setting, self.store)
        except Exception as error:  # whatever a kind meets there, its result meets it as well
            self.log(f"{setting.name} was not compared: {type(error).__name__}: {error}")

    def _tell(self, standing: Standing, compared: Mapping[str, Mapping[str, float]]) -> None:
        """Tell page and tracker what is known to be done."""
        look = standing.seen(compared)
        self.page.going_on(look)
        self.tracking.hear(look, self.trials(look) if self.trials else ())

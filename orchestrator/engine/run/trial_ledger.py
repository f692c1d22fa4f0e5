"""The trials of one search: what is tried next, which trial ends, and what the journal must know of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.halving import Halving
from actors.searches import NUMBER
from audits.errors import BadInput, did_you_mean
from orchestrator.engine.run.search_journal import ANOTHER, Journal
from orchestrator.engine.run.suggesting import Trial, Values, suggest
from orchestrator.engine.store.faults import StoreFull, StoreSilent
from tune_spaces.space import Search

Describe = Callable[[Trial], dict[str, Any]]
"""Returns what a worker must know to run a trial, and ``jobs``: a digest of what it will do; raises BadInput."""

Tell = Callable[[Trial], None]

STOPPED = ("stopped", "out of time")
ENDED = ("done", *STOPPED)


@dataclass
class Ledger:
    """Steers a search (``actors.searches.Steering``) of at most ``samples`` trials of ``parts`` parts each.

    ``describe`` lays a trial out, ``tell`` hears of every change. Trials that ended in an earlier process are told to
    searcher and scheduler in the order of the journal, and are not run again; those that it had begun, or that failed,
    go on first.
    """

    search: Search
    samples: int
    parts: int
    journal: Journal
    halving: Halving | None
    describe: Describe
    tell: Tell
    clock: Callable[[], float] = time.monotonic
    trials: list[Trial] = field(default_factory=list)
    failures: dict[int, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begun = self.clock()
        self.earlier = 0.0
        self.waiting: list[int] = []

    # what an earlier process left

    def go_on(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take up the trials of a journal."""
        ended = {line["trial"] for line in lines if line.get("state") in ENDED}
        for line in lines:
            self.earlier = max(self.earlier, float(line.get("at", 0.0)))
            if "changes" in line:
                self._take_up(line)
                continue
            trial = self.trials[line["trial"]]
            if "parts" in line:
                values: Values = tuple(line["values"])
                trial.values[line["parts"]] = values
                trial.seconds = float(line["seconds"])
                if trial.number in ended and trial.repeats is None:
                    self._ends(trial, line["parts"])
            elif line["state"] in ENDED:
                trial.state = line["state"]
        self._end_repeats(self.trials)
        self.waiting = [trial.number for trial in self.trials if trial.state not in ENDED and trial.repeats is None]
        for trial in self.trials:
            self.tell(trial)

    def _take_up(self, line: Mapping[str, Any]) -> None:
        trial = Trial(len(self.trials), line["changes"], line["params"], repeats=line.get("repeats"))
        if not isinstance(trial.changes, Mapping) or not self.search.space.gives(trial.changes):
            raise BadInput(f"{self.journal.file}: trial {trial.number} is none that the search could draw; {ANOTHER}")
        self.trials.append(trial)
        if line["jobs"] and self.describe(trial)["jobs"] != line["jobs"]:
            raise BadInput(
                f"{self.journal.file}: trial {trial.number} was run with other code, data or versions; {ANOTHER}"
            )

    # steering

    def ask(self) -> dict[str, Any] | None:
        """Return the next trial's configuration; None when there are enough, the time is over, or the store fails."""
        while True:
            if self.waiting and not self.stuck:
                trial = self.trials[self.waiting.pop(0)]
            elif len(self.trials) < self.samples and not self.out_of_time and not self.stuck:
                trial = self._draw()
            else:
                return None
            if trial.state or trial.repeats is not None:
                continue
            try:
                return {NUMBER: trial.number, **self.describe(trial)}
            except BadInput as error:
                self.failed(trial.number, error)

    def hear(self, number: int, report: Mapping[str, Any]) -> bool:
        """Take the numbers of a trial after some parts; return whether it ends there."""
        trial, parts = self.trials[number], int(report["parts"])
        if trial.state:
            return True
        known = parts in trial.values
        trial.values[parts] = self._values(number, report["numbers"])
        trial.seconds = float(report["seconds"])
        if not known:
            self.note(trial=number, parts=parts, values=trial.values[parts], seconds=round(trial.seconds, 3))
        stops = self._ends(trial, parts)
        if parts >= self.parts:
            self._end(trial, "done")
        elif stops:
            self._end(trial, "stopped")
        elif self.out_of_time:
            self._end(trial, "out of time")
        else:
            self.tell(trial)
        return bool(trial.state)

    def failed(self, number: int, error: Exception) -> None:
        """Take note that a trial failed; it is tried again when the search is run again."""
        self.failures[number] = error
        self._end(self.trials[number], "failed")

    @property
    def stuck(self) -> bool:
        """Whether the store failed, as it would in each trial to come; the searcher must not hear of more failures."""
        return any(isinstance(error, StoreFull | StoreSilent) for error in self.failures.values())

    @property
    def out_of_time(self) -> bool:
        """Whether the time that the search may take is over, that of earlier processes counted."""
        return self.search.seconds is not None and self.at >= self.search.seconds

    @property
    def at(self) -> float:
        """Seconds that the search has taken, over all processes."""
        return self.earlier + self.clock() - self.begun

    @property
    def goes_on(self) -> bool:
        """Whether a trial is left to run."""
        return bool(self.open) or (len(self.trials) < self.samples and not self.out_of_time)

    @property
    def open(self) -> list[Trial]:
        """The trials that have begun and not ended."""
        return [trial for trial in self.trials if not trial.state]

    def note(self, **line: Any) -> None:
        """Write a line into the journal."""
        self.journal.note(**line, at=round(self.at, 3))

    def _draw(self) -> Trial:
        """Ask the searcher for the next trial; one that repeats another takes its end, as soon as it has one."""
        changes, params = suggest(self.search, self.trials)
        trial = Trial(len(self.trials), changes, params)
        alike = (each for each in self.trials if each.changes == changes and each.state != "failed")
        same = next(alike, None)
        trial.repeats = None if same is None else same.number if same.repeats is None else same.repeats
        self.trials.append(trial)
        try:
            jobs = self.describe(trial)["jobs"]
        except BadInput:
            jobs = ""  # ``ask`` meets the same error
        again = {} if trial.repeats is None else {"repeats": trial.repeats}
        self.note(trial=trial.number, changes=changes, params=params, jobs=jobs, **again)
        self._end_repeats([trial])
        self.tell(trial)
        return trial

    def _end_repeats(self, trials: Sequence[Trial]) -> None:
        """Give those of ``trials`` that repeat another one its values and its end, if it has ended."""
        for trial in trials:
            if trial.repeats is not None and (first := self.trials[trial.repeats]).state:
                trial.values, trial.state = dict(first.values), first.state

    def _ends(self, trial: Trial, parts: int) -> bool:
        """Tell the scheduler of a trial's value; return whether the trial ends there."""
        (value, *_) = trial.values[parts]
        return self.halving is not None and value is not None and self.halving.stops(trial.number, parts, value)

    def _end(self, trial: Trial, state: str) -> None:
        trial.state = state
        self.note(trial=trial.number, state=state)
        self._end_repeats(self.trials)
        self.tell(trial)

    def _values(self, number: int, numbers: Mapping[str, float | None]) -> Values:
        """Return the numbers that the search is about; raises BadInput if no trial ever had one of them."""
        for name in self.search.metric:
            seen = any(trial.values for trial in self.trials if trial.number != number)
            if name not in numbers and not seen:
                allowed = ", ".join(sorted(numbers))
                raise BadInput(
                    f"metric: {name!r} is not a number of these settings{did_you_mean(name, numbers)}; {allowed}"
                )
        return tuple(
            None if (found := numbers.get(name)) is None or found != found else found for name in self.search.metric
        )

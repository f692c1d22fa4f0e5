"""A run that chooses a setting of an attack without asking a target, freezes it, and then asks the targets once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from audits.writing import write_whole
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Finished, Kind, Tuning
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.distinct import told_same
from orchestrator.engine.run.choice import Choice, choice_entry, rehearsing, selection_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.output_folder import TUNED_FILE, Claim, no_claim
from orchestrator.engine.run.run import Result, Run
from orchestrator.engine.run.search_result import TrialNews, rehearsed
from orchestrator.engine.run.standing import Left
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from tune_spaces.registry import Sweep

NOTHING = "it has no result, because its models diverged"


def run_selection(
    kind: Kind,
    choice: Choice,
    plan: BasePlan,
    out: Path,
    terminal: Terminal,
    *,
    rebuild: bool = False,
    pictures: bool = True,
    aggregate_only: bool = False,
    claim: Claim = no_claim,
) -> Result:
    """Choose among the settings of ``choice``, audit the targets with the winner, and leave the files of an audit."""
    name = f"tune-{choice.sweep}"
    run = Selecting(
        kind, plan, out, terminal, name=name, rebuild=rebuild, pictures=pictures, aggregate_only=aggregate_only,
        claim=claim,
    )  # fmt: skip
    return run.select(choice)


class Selecting(Run):
    """A run in two parts: the rehearsal of all settings, then the audit with the winner and with the plan as it is.

    ``values``: setting → its score in each unit; ``on_targets``: setting → target → its value, of those audited;
    ``rehearsing``: what is shown are settings of the rehearsal, not the first jobs before it or the audit.
    """

    choice: Choice
    chooses = True
    rehearsing = False
    values: Mapping[str, Sequence[float]]
    on_targets: Mapping[str, Mapping[int, float]]

    def is_done(self, sweep: Sweep | None, data: Any, plan: BasePlan, device: str) -> bool:
        """Return False: which setting wins, and what it needs, is known when the rehearsal is done."""
        return False

    def select(self, choice: Choice) -> Result:
        """Rehearse, choose, write the winner down, then audit; no target is as much as trained before."""
        with self.live:
            self.values = self.rehearsed(choice)
            choice = self.choice
            winner = choice.winner(self.values)
            both = {name: choice.settings[name] for name in dict.fromkeys([choice.own, winner])}
            settings = self.laid_out(both)
            frozen = next(each.plan for each in settings if each.name == winner)
            write_whole(self.out / TUNED_FILE, frozen.to_yaml().encode())
            players = selection_of(self.kind).players
            self.terminal.line(f"chosen by {choice.metric} of {players}: {winner}")
            self.look_for_copies()
            with self.session(settings, kept=self.rehearsals):
                trained = self.trained + self.crew.prepare(settings)["trained"]
                self.crew.attack(settings)
            models = self.models([job for each in (*settings, *self.rehearsals) for job in each.jobs])
            counts = {"models": models, "reused": models - trained, "trained": trained}
            return self.finish(settings, counts, main=winner)

    def models(self, jobs: Sequence[Job]) -> int:
        """Return how many models ``jobs`` make, each counted once."""
        return len({job.key for job in jobs if self.kind.stage(job.stage).makes == "model"})

    def rehearsed(self, choice: Choice) -> dict[str, list[float]]:
        """Return the score of every setting that gets one, unit by unit."""
        self.choice = choice
        self.live.know(choice.settings)
        if choice.same:
            self.terminal.line(told_same(choice.same))
        self.tell_refused(choice.refused)
        with self.at_rehearsal():
            settings = self.rehearsals = self.rehearsal(choice)
            self.rehearsing = True
            with self.session(settings):
                self.trained = self.crew.prepare(settings)["trained"]
                self.crew.attack(settings)
            self.rehearsing = False
        selection = selection_of(self.kind)
        found = {each.name: selection.values(each, self.store, choice.metric) for each in settings}
        units = found[choice.own]
        for name, why in lacking(found, choice.own, selection.unit).items():
            self.tell_refused({name: why})
            choice = choice.without([name], why)
        self.choice = choice
        values = {name: [found[name][unit] for unit in units] for name in choice.scored}
        self.live.tell_trials(scores_of(choice, values))
        return values

    def tell_refused(self, refused: Mapping[str, str]) -> None:
        """Say which settings are left out, and why."""
        for name, why in refused.items():
            self.terminal.line(f"warning: setting {name} is left out: {why}")

    @contextmanager
    def at_rehearsal(self) -> Iterator[None]:
        """Let designs be laid out, and jobs be done, by the kind of the rehearsal."""
        audit = self.crew
        self.crew = Crew(rehearsing(self.kind), self.design, audit.most, self.stored, self.terminal)
        try:
            yield
        finally:
            self.crew = audit

    def rehearsal(self, choice: Choice) -> list[Setting]:
        """Return the settings that get a score, each with the plan and the jobs of its rehearsal."""
        selection = selection_of(self.kind)
        plans = {}
        for name, changes in choice.scored.items():
            plan = with_digests(self.plan.changed(changes)) if changes else self.plan
            plans[name] = selection.rehearsed(plan, choice.metric)
        data, device = self.design.data, self.design.device
        designs = {name: self.crew.kind.lay_out(plan, data, device, self.store) for name, plan in plans.items()}
        self.do_first(list(designs.values()))
        return [
            Setting(name, choice.settings[name], plans[name], tuple(selection.jobs(design, choice.metric)))
            for name, design in designs.items()
        ]

    def watch(self, settings: Sequence[Setting], left: Left, what: str = "", tuning: Tuning | None = None) -> None:
        """Show how far ``settings`` are; those of the rehearsal are tracked as trials, by their scores at selection."""
        if not self.rehearsing:
            return super().watch(settings, left, what, tuning)
        selection, choice = selection_of(self.kind), self.choice
        values: dict[str, Sequence[float]] = {}

        def compare(setting: Setting, store: Store) -> dict[str, float]:
            values[setting.name] = found = list(selection.values(setting, store, choice.metric).values())
            return {choice.metric: fmean(found)} if found else {}

        what = "choosing without asking a target"
        self.live.begin(settings, left, compare, tracked=True, what=what, trials=lambda look: scores_of(choice, values))

    def beside(self, finished: Finished) -> dict[str, Any]:
        """Return the choice, and what became of it on the targets."""
        selection, choice = selection_of(self.kind), self.choice
        self.on_targets = {
            setting.name: selection.on_targets(setting, finished.scores, choice.metric) for setting in finished.settings
        }
        return {
            "selection": choice_entry(choice, selection, self.values, self.on_targets, float(self.plan.audit.level))
        }


def lacking(found: Mapping[str, Mapping[int, float]], own: str, unit: str) -> dict[str, str]:
    """Return why settings get no score: setting → what is missing of the units in which the plan's ``own`` has one.

    Means over other units would say which units are easier, not which setting is better.
    """
    units = found[own]
    reasons = {}
    for name, values in found.items():
        if not values:
            reasons[name] = NOTHING
        elif missing := [each for each in units if each not in values]:
            reasons[name] = f"{NOTHING} in {len(missing)} of {len(units)} {unit}s"
    return reasons


def scores_of(choice: Choice, values: Mapping[str, Sequence[float]]) -> list[TrialNews]:
    """Return the settings of a choice that have scores, as they are tracked; ``values``: setting → score by unit."""
    return [
        rehearsed(number, name, changes, fmean(values[name]), len(values[name]))
        for number, (name, changes) in enumerate(choice.settings.items())
        if values.get(name)
    ]

"""A run that chooses a setting of an attack without asking a target, freezes it, and then asks the targets once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from orchestrator.engine.given_files import with_digests
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Finished, Kind, Tuning
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.choice import Choice, selection_of, told
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import write_whole
from orchestrator.engine.run.run import Result, Run
from orchestrator.engine.run.search_result import TrialNews, rehearsed
from orchestrator.engine.run.standing import Left
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from tune_spaces.registry import Sweep

TUNED_FILE = "tuned.yaml"


def run_selection(
    kind: Kind, choice: Choice, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False
) -> Result:
    """Choose among the settings of ``choice``, audit the targets with the winner, and leave the files of an audit."""
    return Selecting(kind, plan, out, terminal, name=f"tune-{choice.sweep}", rebuild=rebuild).select(choice)


class Selecting(Run):
    """A run in two parts: the rehearsal of all settings, then the audit with the winner and with the plan as it is.

    ``values``: setting → its score in each unit; ``on_targets``: setting → target → its value, of those audited.
    """

    choice: Choice | None = None
    rehearsing = False
    values: Mapping[str, Sequence[float]]
    on_targets: Mapping[str, Mapping[int, float]]

    def is_done(self, sweep: Sweep | None, data: Any, plan: BasePlan, device: str) -> bool:
        """Return False: which setting wins, and what it needs, is known when the rehearsal is done."""
        return False

    def select(self, choice: Choice) -> Result:
        """Rehearse, choose, write the winner down, then audit; no target is as much as trained before."""
        self.choice = choice
        with self.live:
            self.values = self.rehearsed(choice)
            winner = choice.winner(self.values)
            both = {name: choice.settings[name] for name in dict.fromkeys([choice.own, winner])}
            settings = self.laid_out(both)
            frozen = next(each.plan for each in settings if each.name == winner)
            write_whole(self.out / TUNED_FILE, frozen.to_yaml().encode())
            self.terminal.line(f"chosen by {choice.metric} of shadows that play the target: {winner}")
            self.look_for_copies()
            with self.session(settings, kept=self.rehearsals):
                trained = self.trained + self.crew.prepare(settings)["trained"]
                self.crew.attack(settings)
            models = self.models([job for each in (*settings, *self.rehearsals) for job in each.jobs])
            return self.finish(settings, {"models": models, "reused": models - trained, "trained": trained})

    def models(self, jobs: Sequence[Job]) -> int:
        """Return how many models ``jobs`` make, each counted once."""
        return len({job.key for job in jobs if self.kind.stage(job.stage).makes == "model"})

    def rehearsed(self, choice: Choice) -> dict[str, list[float]]:
        """Return the score of every setting that gets one, unit by unit."""
        selection = selection_of(self.kind)
        scored = choice.scored
        for name, why in choice.refused.items():
            self.terminal.line(f"warning: setting {name} is left out: {why}")
        plans = {
            name: with_digests(self.plan.changed(changes)) if changes else self.plan for name, changes in scored.items()
        }
        designs = {name: self.lay_out(plan, self.design.data, self.design.device) for name, plan in plans.items()}
        self.do_first(list(designs.values()))
        settings = [
            Setting(name, scored[name], plans[name], tuple(selection.jobs(design, choice.metric)))
            for name, design in designs.items()
        ]
        self.rehearsals = settings
        self.rehearsing = True
        with self.session(settings):
            self.trained = self.crew.prepare(settings)["trained"]
            self.crew.attack(settings)
        self.rehearsing = False
        values = {each.name: list(selection.values(each.jobs, self.store)) for each in settings}
        self.live.tell_trials(scores_of(choice, values))
        return values

    def watch(self, settings: Sequence[Setting], left: Left, what: str = "", tuning: Tuning | None = None) -> None:
        """Show how far ``settings`` are; those of the rehearsal are tracked as trials, by their scores at selection."""
        if not self.rehearsing:
            return super().watch(settings, left, what, tuning)
        selection, choice = selection_of(self.kind), self.choice
        assert choice is not None
        values: dict[str, Sequence[float]] = {}

        def compare(setting: Setting, store: Store) -> dict[str, float]:
            values[setting.name] = selection.values(setting.jobs, store)
            return {choice.metric: fmean(values[setting.name])}

        what = "choosing without asking a target"
        self.live.begin(settings, left, compare, tracked=True, what=what, trials=lambda look: scores_of(choice, values))

    def beside(self, finished: Finished) -> dict[str, Any]:
        """Return the choice, if there was one, and what became of it on the targets."""
        if self.choice is None:
            return {}
        selection, choice = selection_of(self.kind), self.choice
        scores, names = finished.scores, [setting.name for setting in finished.settings]
        self.on_targets = {name: selection.on_targets(scores, name, choice.metric) for name in names}
        level = float(self.plan.audit.level)
        return {"selection": told(choice, self.values, self.on_targets, selection.unit, level, selection.within)}


def scores_of(choice: Choice, values: Mapping[str, Sequence[float]]) -> list[TrialNews]:
    """Return the settings of a choice that have scores, as they are tracked; ``values``: setting → score by unit."""
    return [
        rehearsed(number, name, changes, fmean(values[name]), len(values[name]))
        for number, (name, changes) in enumerate(choice.settings.items())
        if name in values
    ]

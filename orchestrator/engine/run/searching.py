"""A search: a sweep whose settings are chosen while it goes on, by what earlier ones came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from actors.halving import Halving
from actors.jobs import WorkersLost
from actors.searches import run_search
from audits.errors import BadInput, how_many
from orchestrator.engine.given_files import target_of, with_digests
from orchestrator.engine.jobs.job import keys_by_stage
from orchestrator.engine.jobs.keys import digest
from orchestrator.engine.kind import Design, Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Advance, Terminal
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.live import Live
from orchestrator.engine.run.output_folder import Claim
from orchestrator.engine.run.part_trial import PartTrial
from orchestrator.engine.run.search_checks import check_search, head_of, samples_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from orchestrator.engine.run.search_outlook import Outlook, outlook
from orchestrator.engine.run.search_result import TrialNews, counted, news_of, search_document
from orchestrator.engine.run.suggesting import Trial, suggest
from orchestrator.engine.run.target_parts import judging, parts_of, rungs
from orchestrator.engine.run.trial_ledger import ENDED, Ledger
from orchestrator.engine.run.trusted import require_allowed
from orchestrator.engine.setting import Setting, plans_of
from orchestrator.engine.target_check import check_target_of
from tune_spaces.space import Search

DRAWN = 6
"""Settings that are laid out before a search to see which models its trials share."""


@dataclass
class Searching:
    """The search of one run around ``plan``; ``lay_out`` returns the design of a plan on the run's data."""

    name: str
    kind: Kind
    search: Search
    plan: BasePlan
    lay_out: Callable[[BasePlan], Design]
    crew: Crew
    live: Live
    terminal: Terminal
    out: Path
    laid_out: dict[int, list[Setting]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    """Keys of models that were not there when a trial was laid out."""
    names: dict[int, str] = field(default_factory=dict)
    advance: Advance | None = None

    def begin(self, base: Setting, *, force: bool, claim: Claim) -> None:
        """Check the search, say what a trial costs, and take up what the journal in ``out`` has of it.

        Only when the journal is known to be that of this search anything is written, ``claim`` first; with ``force``
        it begins anew instead.
        """
        self.parts = len(parts_of(self.kind, base.jobs))
        check_search(self.search, self.parts)
        self.samples = samples_of(self.search)
        asha = self.search.scheduler
        self.rungs = rungs(self.parts, asha.grace, asha.reduction) if asha else [self.parts]
        journal = Journal(self.out / JOURNAL_FILE, head_of(self.search, self.plan))
        new = partial(Ledger, self.search, self.samples, self.parts, journal, describe=self.describe, tell=self.hear)
        self.ledger, anew = new(self.halving()), False
        try:
            journal.check(self.samples)
            self.ledger.go_on(journal.lines())
        except BadInput:
            if not force:
                raise
            self.laid_out, self.made, self.names = {}, set(), {}
            self.ledger, anew = new(self.halving()), True
        self.outlook = self.look_ahead()
        self.note_missing([self.shared])
        self.terminal.line(self.outlook.line([each.path for each in self.search.space.dimensions]))
        if asha:
            after = " and ".join(map(str, self.rungs[:-1]))
            self.terminal.line(f"asha: trials are compared after {after} of {self.parts} parts of the targets")
        claim()
        journal.begin(anew=anew)
        self.live.know({self.name_of(each): each.changes for each in self.ledger.trials})
        self.live.know({each.name: each.overrides for each in self.kept})
        ended = sum(trial.state in ENDED for trial in self.ledger.trials)
        self.terminal.line(f"trials: {self.samples}, {ended} ended before, {self.samples - ended} to run")

    def halving(self) -> Halving | None:
        """Return a scheduler that has heard of no trial yet, if the search has one."""
        asha = self.search.scheduler
        return Halving(self.parts, asha.grace, asha.reduction, self.search.mode[0]) if asha else None

    def look_ahead(self) -> Outlook:
        """Return what trials share, by a few that are laid out before any is run."""
        self.drawn, refused = [], ""
        for number in range(min(DRAWN, self.samples)):
            before = [Trial(each, {}, {}, state="failed") for each in range(number)]
            changes, _ = suggest(self.search, before)
            try:
                self.drawn += self.lay_out_changes(changes, self.search.space.name(changes))
            except BadInput as error:  # a combination that the plan's rules refuse: its trial says so
                refused = str(error)
        if not self.drawn:
            drawn = how_many(min(DRAWN, self.samples), "setting")
            raise BadInput(f"none of {drawn} drawn from the space is a plan: {refused}")
        return outlook(self.kind, [setting.jobs for setting in self.drawn])

    @property
    def shared(self) -> Setting:
        """What all trials share, as a setting whose jobs are done before them."""
        return Setting("base", {}, self.drawn[0].plan, self.outlook.shared)

    @property
    def left(self) -> list[Setting]:
        """Settings that stand for the work of the trials that are left, for an estimate; none if all have ended."""
        return self.drawn if self.ledger.goes_on else []

    def run(self) -> None:
        """Run the trials that are left; raises the first one's error after the others, WorkersLost for open ones."""
        if not self.ledger.goes_on:
            return
        workers = self.crew.workers
        at_a_time = min(self.search.at_a_time or workers.count, workers.count, self.samples)
        trial = PartTrial(self.crew.contexts(plans_of(self.drawn)), tuple(self.rungs), alone=workers.count == 0)
        with self.terminal.stage("trials", self.samples) as self.advance, self.terminal.quiet():
            self.tell_all()
            run_search(self.ledger, trial, workers, at_a_time, name=self.name)
        if failures := self.ledger.failures:
            raise failures[min(failures)]
        if self.ledger.open:
            numbers = ", ".join(str(each.number) for each in self.ledger.open)
            raise WorkersLost(f"trials {numbers} of {self.name} have not ended; run the same command again to go on")

    def tell_all(self) -> None:
        """Show how many trials have ended, and tell page and tracker of all of them."""
        if self.advance is not None:
            self.advance(sum(each.state in ENDED for each in self.ledger.trials))
            own = [self.news(each) for each in self.ledger.trials if each.repeats is None]
            self.live.hear_trials(own, self.samples, self.parts)

    def whole(self) -> list[Setting]:
        """Return the settings of the trials that judged all targets, in order; raises BadInput if there is none."""
        self.terminal.line(counted(self.ledger.trials))
        found = {  # two trials with the same changes may have run side by side
            setting.name: setting
            for trial in reversed(self.ledger.trials)
            if trial.state == "done" and trial.repeats is None
            for setting in reversed(self.settings_of(trial))
        }
        if not found:
            raise BadInput(
                f"no trial judged all its targets within {self.search.seconds} s; give the search more seconds"
            )
        return list(reversed(found.values()))

    def counts(self, settings: Sequence[Setting]) -> dict[str, int]:
        """Return how many models ``settings`` have, reused and made by this run."""
        makes = {stage.name for stage in self.kind.stages if stage.makes == "model"}
        models = {job.key for setting in settings for job in setting.jobs if job.stage in makes}
        trained = len(models & self.made)
        return {"models": len(models), "reused": len(models) - trained, "trained": trained}

    def document(self) -> dict[str, Any]:
        """Return what result.json says of the search."""
        return search_document(self.search, self.ledger.trials, self.samples, self.rungs, self.name_of)

    # one trial

    def describe(self, trial: Trial) -> dict[str, Any]:
        """Return what a worker must know of a trial, and a digest of its jobs; raises BadInput for no plan."""
        settings = self.settings_of(trial)
        for setting in settings:
            if (parts := len(parts_of(self.kind, setting.jobs))) != self.parts:
                raise BadInput(
                    f"trial {trial.number} ({setting.name}) has {parts} parts of targets, the plan {self.parts}; "
                    "trials are compared part by part: let the space leave their number alone"
                )
        keys = sorted({job.key for setting in settings for job in setting.jobs})
        plans = {setting.plan.plan_hash: setting.plan.resolved() for setting in settings}
        return {"plans": json.dumps(plans), "jobs": digest("".join(keys).encode())[:16]}

    def settings_of(self, trial: Trial) -> list[Setting]:
        """Return the settings of a trial, one a seed."""
        if trial.number not in self.laid_out:
            settings = self.lay_out_changes(trial.changes, self.name_of(trial))
            self.note_missing(settings)
            self.laid_out[trial.number] = settings
            if self.advance is not None:
                self.keep()
        return self.laid_out[trial.number]

    def note_missing(self, settings: Sequence[Setting]) -> None:
        """Note the models of ``settings`` that are not there, and so will be made."""
        models = self.kind.making_models(job for setting in settings for job in setting.jobs)
        self.made |= {job.key for job in self.crew.stored.lacks(models)}

    @property
    def kept(self) -> list[Setting]:
        """The settings of all trials so far, ended or not."""
        return [setting for settings in self.laid_out.values() for setting in settings]

    def keep(self) -> None:
        """Write down that artefacts of all trials so far are in use, so that ``cache gc`` keeps them."""
        jobs = [*self.outlook.shared, *(job for setting in self.kept for job in setting.jobs)]
        gpu = (self.plan.compute.gpu or "") if self.crew.design.device != "cpu" else ""
        self.crew.stored.record(self.name, self.plan, keys_by_stage(jobs), gpu)

    def lay_out_changes(self, changes: Mapping[str, Any], name: str) -> list[Setting]:
        """Return the settings of a trial's changes, one a seed; raises BadInput where they make no plan."""
        seeds = self.search.seeds
        found = []
        for seed in seeds or (None,):
            values = changes if seed is None else {**changes, "seed": seed}
            plan = with_digests(self.plan.changed(values))
            require_allowed(plan)
            design = self.lay_out(plan)
            if target_of(plan) != target_of(self.plan):
                check_target_of(design)
            if self.crew.stored.lacks(design.first_jobs()):
                raise BadInput(
                    f"{name}: points would be ranked anew for this trial; search other fields, or split.points: random"
                )
            full = name if len(seeds) < 2 else f"{name}, seed={seed}"
            found.append(Setting(full, values, plan, tuple(design.jobs()), design.weight))
        return found

    def name_of(self, trial: Trial) -> str:
        """Return a trial's name; where an earlier one with other changes has it, with the trial's number."""
        if trial.number not in self.names:
            name = self.search.space.name(trial.changes)
            earlier = [each for each in self.ledger.trials[: trial.number] if each.changes != trial.changes]
            taken = any(self.name_of(each) == name for each in earlier)
            self.names[trial.number] = f"{name} (trial {trial.number})" if taken else name
        return self.names[trial.number]

    def hear(self, trial: Trial) -> None:
        """Hear of a change of a trial: page and tracker are told, and what it made is known to be there."""
        if trial.state in ENDED and trial.repeats is None:
            for setting in self.settings_of(trial):
                parts = max(trial.values, default=0)
                done = setting.jobs if trial.state == "done" else judging(self.kind, setting.jobs, parts)
                self.crew.stored.known.add(done)
        elif trial.repeats is not None and self.advance is not None:
            name = self.name_of(trial)
            self.terminal.line(f"trial {trial.number} repeats trial {trial.repeats} ({name}): nothing is run")
        self.tell_all()

    def news(self, trial: Trial) -> TrialNews:
        """Return a trial as page and tracker are told of it."""
        return news_of(trial, self.name_of(trial), self.search.metric)

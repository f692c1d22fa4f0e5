"""The workers of a run: how many are settled on, the Ray cluster that holds them, the jobs handed to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from actors.cluster import connect
from actors.jobs import Workers
from actors.pools import do_jobs
from actors.trials import run_trials
from audits.errors import BadInput, how_many
from orchestrator.engine.cost.choice import Work, choose_workers
from orchestrator.engine.given_files import target_of
from orchestrator.engine.jobs.job import Job, in_turn, missing
from orchestrator.engine.kind import Design, Kind, load
from orchestrator.engine.own_code import OwnCode, own_code
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.stored_work import StoredWork
from orchestrator.engine.run.trial import RunSetting
from orchestrator.engine.run.trusted import TrustedContexts
from orchestrator.engine.run.within import Reported
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from orchestrator.engine.run.workers import AS_THEY_COME
from orchestrator.engine.setting import Setting, plans_of
from orchestrator.engine.store.checkpoints import unfinished
from orchestrator.engine.store.owner import this_process
from orchestrator.engine.store.probe import probed
from orchestrator.engine.target_check import check_target_of
from tune_spaces.registry import Sweep

PLANTED = "orchestrator.engine.run.answered:planted"
"""Imported where there is a target, for it takes torch."""


class Crew:
    """The workers of one run; ``most``: as many as the plan allows, as ``hire`` returned them."""

    def __init__(self, kind: Kind, design: Design, most: Workers, stored: StoredWork, terminal: Terminal) -> None:
        self.kind = kind
        self.plan: BasePlan = design.plan
        self.design = design
        self.most = most
        self.workers = most
        self.stored = stored
        self.store = stored.store
        self.terminal = terminal
        self.probe = ""
        self.owner = this_process()

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Hold the Ray cluster of the workers, and on other machines' a probe in the store; without workers neither.

        Raises BadInput for code that no worker can import.
        """
        if self.workers.count:
            self.code_of([self.plan])
        if self.plan.compute.address:
            self.store.claims.forget_the_dead()
        probe = probed(self.store) if self.plan.compute.address else nullcontext("")
        with (
            connect(self.workers, self.terminal.last_words) if self.workers.count else nullcontext(),
            probe as self.probe,
        ):
            yield

    def settle(self, work: Work) -> None:
        """Settle who does ``work`` and say so: as many workers as the plan says, with ``auto`` what is sooner done."""
        compute, reason = self.plan.compute, ""
        if compute.workers == "auto" and compute.address is None and compute.workers_per_model == 1:
            chosen = choose_workers(self.kind, work, self.design.device, self.most.count)
            self.workers = replace(self.most, count=chosen.workers)
            reason = f" ({chosen.reason}; compute.workers: auto)"
        where = f"at {compute.address}" if compute.address else "on this machine"
        growing = self.workers.count == AS_THEY_COME
        count = "as many workers as join, each" if growing else how_many(self.workers.count, "worker")
        together = f", {self.workers.per_model} to a model" if self.workers.per_model > 1 else ""
        size = f" with {self.workers.size}" if compute.address else ""
        who = f"Ray: {count}{size}{together} {where}" if self.workers.count else "in this process, without Ray"
        if reason or self.workers.count:
            self.terminal.line(f"{who}{reason}")

    def check_targets(self, settings: Sequence[Setting]) -> None:
        """Refuse a given model that cannot answer about what is asked, of settings of which anything is left to do."""
        for setting in settings:
            if target_of(setting.plan) is not None and self.stored.lacks(setting.jobs):
                check_target_of(self.kind.lay_out(setting.plan, self.design.data, self.design.device, self.store))

    def drop_planted(self, settings: Sequence[Setting]) -> None:
        """Drop given models from the store that are not those of the plan, so that they are read anew."""
        for setting in settings:
            if target_of(setting.plan) is not None:
                design = self.kind.lay_out(setting.plan, self.design.data, self.design.device, self.store)
                for job in load(PLANTED)(design):
                    self.terminal.line(f"artefact {job.stage}/{job.key} is not what the plan is given: dropped")
                    self.stored.known.drop(job.stage, job.key)

    def bring_in(self, settings: Sequence[Setting]) -> None:
        """Put what plans are given into the store, here: workers on other machines need not see the files."""
        for setting in settings:
            if jobs := self.stored.lacks(self.kind.brought_in(setting.jobs)):
                design = self.kind.lay_out(setting.plan, self.design.data, self.design.device, self.store)
                context = WorkerContext(self.kind, design, self.store)
                for job in jobs:
                    context.perform(job)
                self.stored.known.add(jobs)

    def prepare(self, settings: Sequence[Setting]) -> dict[str, int]:
        """Train, unlearn and measure what is missing; return how many models there are, reused and made."""
        unique = {job.key: job for setting in settings for job in self.kind.making_models(setting.jobs)}
        todo = self.stored.lacks(unique.values())
        needed, left = Counter(job.stage for job in unique.values()), Counter(job.stage for job in todo)
        makes_models = {stage.name for stage in self.kind.stages if stage.makes == "model"}
        models, made = (sum(count[stage] for stage in makes_models) for count in (needed, left))
        to_do, title = self.kind.making
        if makes_models:
            self.terminal.line(f"population: {how_many(models, 'model')}, {models - made} reused, {made} {to_do}")
            self.tell_of_checkpoints(job for job in todo if job.stage in makes_models)
        for stage in (name for name in needed if name not in makes_models):
            done = needed[stage] - left[stage]
            self.terminal.line(f"{stage}: {how_many(needed[stage], 'job')}, {done} reused, {left[stage]} to do")
        if todo:
            for line in self.kind.before(self.plan, todo, self.design.device):
                self.terminal.line(line)
            self.populate(todo, plans_of(settings), title)
        return {"models": models, "reused": models - made, "trained": made}

    def tell_of_checkpoints(self, todo: Iterable[Job]) -> None:
        """Print how many of the jobs are not begun anew, where there are such."""
        if not self.plan.compute.checkpoint_minutes or not (jobs := {(job.stage, job.key) for job in todo}):
            return
        if kept := len(jobs & unfinished(self.store)):
            self.terminal.line(f"checkpoints: {kept} of the models {'goes' if kept == 1 else 'go'} on from there")

    def populate(self, jobs: Sequence[Job], plans: Sequence[BasePlan], title: str) -> None:
        """Train, unlearn and measure through one queue: a Ray Train group's, or that of actors on a cluster."""
        self.carry_out(in_turn(jobs), plans, title, self.workers)

    def carry_out(self, jobs: Sequence[Job], plans: Sequence[BasePlan], title: str, workers: Workers) -> None:
        """Do jobs of ``plans`` on ``workers`` and show how far they are."""
        stage_of = {job.key: job.stage for job in jobs}
        names = {job.key: " ".join([job.stage, *([job.kind] if job.kind else [])]) for job in jobs}
        with (
            self.terminal.stage(title, len(jobs)) as advance,
            self.terminal.quiet(),
        ):
            do_jobs(
                jobs,
                self.contexts(plans),
                workers,
                on_progress=advance,
                is_done=lambda key: self.store.has(stage_of[key], key),
                on_words=Reported(names, self.terminal.line),
                tell=self.terminal.line,
            )
        self.stored.known.add(jobs)

    def attack(self, settings: Sequence[Setting]) -> None:
        """Gather evidence and score what is missing, on actors."""
        jobs = (job for setting in settings for job in self.kind.gathering(setting.jobs))
        units = self.stored.lacks(jobs)
        if units:
            self.carry_out(units, plans_of(settings), "attacking", replace(self.workers, engine="actors"))

    def complete(self, settings: Sequence[Setting]) -> None:
        """Do what the store lacks of settings that were done once; nothing, unless artefacts were removed."""
        if self.stored.lacks(job for setting in settings for job in setting.jobs):
            self.prepare(settings)
            self.attack(settings)

    def trials(self, sweep: Sweep, settings: Sequence[Setting]) -> None:
        """Run the settings that are not yet done as Ray Tune trials, the dearest first.

        A sweep of fewer settings than workers, and every sweep on a cluster whose nodes come and go, is cut into the
        shards of its settings, for actors: a lost node then costs a shard and no trial.
        """
        present = self.stored.present()
        left = [setting for setting in settings if any(True for _ in missing(setting.jobs, present))]
        self.terminal.line(f"settings: {len(settings)}, {len(settings) - len(left)} reused, {len(left)} to run")
        if not left:
            return
        cut = len(left) < self.workers.count or self.workers.engine == "actors"
        if cut and sweep.measures == "attacks":
            self.attack(left)
            return
        left.sort(key=lambda setting: -setting.weight)
        names = [setting.name for setting in left]
        plans = {setting.name: setting.plan.plan_hash for setting in left}
        todo = {each.name: frozenset(job.key for job in missing(each.jobs, present)) for each in left}
        trial = RunSetting(plans, self.contexts(plans_of(left)), sweep.measures, todo)
        with self.terminal.stage("settings", len(left)) as advance, self.terminal.quiet():
            space = sweep.space(names) if self.workers.count else {"setting": {"grid_search": names}}
            run_trials(space, trial, self.workers, name=sweep.name, on_progress=advance)
        self.stored.known.add(job for setting in left for job in setting.jobs)

    def code_of(self, plans: Sequence[BasePlan]) -> OwnCode:
        """Return the users' own code of ``plans``; raises BadInput where workers are to import what they cannot."""
        code = own_code(plan.resolved() for plan in plans)
        if code.in_main and self.workers.count:
            raise BadInput(
                f"{code.in_main.partition('.')[2]} is code of a notebook or a script ({code.in_main}), which worker "
                "processes cannot import; put it into a module, or set compute.workers to 0"
            )
        return code

    def contexts(self, plans: Sequence[BasePlan]) -> OpenContexts:
        """Return what a worker needs to do the jobs of ``plans``."""
        values = {plan.plan_hash: plan.resolved() for plan in plans}
        data = self.design.data.fingerprint
        code = self.code_of(plans)
        device, trust = self.design.device, self.store.trust
        return TrustedContexts(
            self.kind, values, self.store.uri, device, data, self.probe, self.owner, code, trust=trust
        )

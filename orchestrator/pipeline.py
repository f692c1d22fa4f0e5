"""From a plan to a result: train and unlearn what is missing, attack, score, report, track."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.jobs import NO_MODELS, STAGES, Job, in_turn, missing
from orchestrator.kinds import audit_kind
from orchestrator.output_folder import write_outputs
from orchestrator.schedule import AnyScheduler, open_scheduler
from orchestrator.setting import Setting, plans_of
from orchestrator.stages import OpenWorkshops
from orchestrator.trial import RunSetting
from orchestrator.workers import workers_of

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestrator.console import Terminal
    from orchestrator.plan_base import BasePlan
    from orchestrator.store import Store
    from tune_spaces.registry import Sweep


@dataclass(frozen=True)
class Result:
    """A finished run: ``document`` as in result.json and the scores table."""

    document: dict[str, Any]
    scores: pa.Table = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the content of result.json."""
        return self.document


def run_audit(plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False) -> Result:
    """Carry out one audit and leave result, scores, figures, report and tracking in ``out``."""
    return Run(plan, out, terminal, name=f"{plan.kind}-audit", rebuild=rebuild).audit()


def run_sweep(sweep: Sweep, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False) -> Result:
    """Carry out every setting of ``sweep`` over one shared population; see ``run_audit``."""
    return Run(plan, out, terminal, name=sweep.name, rebuild=rebuild).sweep(sweep)


def run_tuning(sweep: Sweep, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False) -> dict[str, Any]:
    """Carry out a sweep of utilities and leave its table and its presets in ``out``; return the table's document."""
    return Run(plan, out, terminal, name=sweep.name, rebuild=rebuild).tune(sweep)


class Run:
    """One run of a plan: where its work is kept, who does it, and what it says meanwhile."""

    def __init__(self, plan: BasePlan, out: Path, terminal: Terminal, *, name: str, rebuild: bool) -> None:
        from orchestrator.store import Store, default_store_uri
        from orchestrator.tracking import check_uri

        self.begin = time.perf_counter()
        self.plan = plan
        self.out = out
        self.terminal = terminal
        self.name = name
        self.rebuild = rebuild
        check_uri(plan.tracking.uri)
        self.store: Store = Store(plan.compute.store or default_store_uri())
        self.kind = audit_kind(plan.kind)
        self.scheduler = open_scheduler(plan, self.store)
        self.workers = workers_of(plan, self.scheduler.device, self.store, terminal)

    def audit(self) -> Result:
        """Run the plan as it is: its one setting, or each of those that it names."""
        settings = self.laid_out(self.plan.settings(), utility=False)
        with self.session(settings):
            counts = self.prepare(settings)
            self.attack(settings)
        return self.finish(settings, counts)

    def sweep(self, sweep: Sweep) -> Result:
        """Run every setting of a sweep; the models are those of all settings together, each trained once."""
        settings = self.settings(sweep)
        with self.session(settings):
            counts = self.prepare(settings)
            self.trials(sweep, settings)
        return self.finish(settings, counts, sweep)

    def tune(self, sweep: Sweep) -> dict[str, Any]:
        """Make and measure the targets of every setting of ``sweep``; no shadows, no attacks."""
        from orchestrator.tuning import tuned, write_tuned

        settings = self.settings(sweep)
        with self.session(settings):
            shared = [job for setting in settings for job in setting.jobs.models if is_shared(job)]
            todo = list(missing(shared, self.present()))
            if todo:
                self.populate(todo, plans_of(settings), self.kind.making[1])
            self.trials(sweep, settings)
        document = tuned(sweep.name, settings, self.store, self.plan)
        document["seconds"] = round(time.perf_counter() - self.begin, 3)
        write_tuned(self.out, document)
        return document

    def settings(self, sweep: Sweep) -> list[Setting]:
        """Return the settings of ``sweep`` around the plan, with their jobs."""
        return self.laid_out(sweep.settings(self.plan.resolved()), utility=sweep.measures == "utility")

    def laid_out(self, changes: Mapping[str, Mapping[str, Any]], *, utility: bool) -> list[Setting]:
        """Return settings (name → dotted fields that change) with their jobs; ``utility``: targets alone."""
        plans = {name: self.plan.changed(overrides) if overrides else self.plan for name, overrides in changes.items()}
        data, device = self.scheduler.data, self.scheduler.device
        schedulers = {name: open_scheduler(plan, self.store, data, device) for name, plan in plans.items()}
        self.rank(list(schedulers.values()))
        found = []
        for name, scheduler in schedulers.items():
            jobs = scheduler.schedule()
            found.append(Setting(name, changes[name], plans[name], jobs.of_targets() if utility else jobs))
        return found

    def rank(self, schedulers: Sequence[AnyScheduler]) -> None:
        """Train the ranking populations that are missing and rank the points: partitions are made from that."""
        from actors.cluster import connect

        jobs = {job.key: job for scheduler in schedulers for job in scheduler.ranking_jobs()}
        self.ranking = list(jobs.values())
        todo = list(missing(self.ranking, self.present()))
        if todo:
            self.terminal.line(f"ranking: {len(self.ranking)} jobs, {len(self.ranking) - len(todo)} reused")
            with self.terminal.quiet(), connect(self.workers):
                self.populate(todo, [scheduler.plan for scheduler in schedulers], "ranking the points")

    @contextmanager
    def session(self, settings: Sequence[Setting]) -> Iterator[None]:
        """Record the run, check the store if asked, and hold one Ray cluster if there is anything left to do."""
        from actors.cluster import connect

        held: dict[str, list[str]] = {}
        for setting in settings:
            for stage, keys in setting.jobs.keys().items():
                held.setdefault(stage, []).extend(keys)
        for job in self.ranking:
            held.setdefault(job.stage, []).append(job.key)
        self.store.record_run(self.name, self.plan.deciding(), held)
        if self.rebuild:
            self.drop_damaged(held)
        present = self.present()
        left = any(next(missing(each.jobs.everything, present), None) for each in settings)
        if not left or not self.workers.count:
            yield
            return
        where = f"at {self.workers.address}" if self.workers.address else "on this machine"
        self.terminal.line(f"Ray: {self.workers.count} workers {where}")
        with self.terminal.quiet(), connect(self.workers):
            yield

    def prepare(self, settings: Sequence[Setting]) -> dict[str, int]:
        """Train, unlearn and measure what is missing; return how many models there are, reused and made."""
        unique = {job.key: job for setting in settings for job in setting.jobs.population}
        todo = list(missing(unique.values(), self.present()))
        made = [job for job in todo if job.stage not in NO_MODELS]
        models = sum(job.stage not in NO_MODELS for job in unique.values())
        to_do, title = self.kind.making
        self.terminal.line(f"population: {models} models, {models - len(made)} reused, {len(made)} {to_do}")
        if looks := sum(job.stage == "look" for job in unique.values()):
            left = sum(job.stage == "look" for job in todo)
            self.terminal.line(f"looks at them: {looks}, {looks - left} reused, {left} to take")
        if todo:
            self.populate(todo, plans_of(settings), title)
        return {"models": models, "reused": models - len(made), "trained": len(made)}

    def populate(self, jobs: Sequence[Job], plans: Sequence[BasePlan], title: str) -> None:
        """Train, unlearn and measure through one queue, served by one Ray Train run."""
        from actors.population import train_population

        stage_of = {job.key: job.stage for job in jobs}
        with self.terminal.stage(title, len(jobs)) as advance, self.terminal.quiet():
            train_population(
                in_turn(jobs),
                self.workshops(plans),
                self.workers,
                on_progress=advance,
                is_done=lambda key: self.store.has(stage_of[key], key),
            )

    def attack(self, settings: Sequence[Setting]) -> None:
        """Search and score what is missing, on the attack pool."""
        from actors.attack_pool import run_units

        units = list(missing((job for setting in settings for job in setting.jobs.attacks), self.present()))
        if not units:
            return
        with self.terminal.stage("attacking", len(units)) as advance, self.terminal.quiet():
            run_units(units, self.workshops(plans_of(settings)), self.workers, on_progress=advance)

    def trials(self, sweep: Sweep, settings: Sequence[Setting]) -> None:
        """Run the settings that are not yet done as Ray Tune trials, the dearest first.

        A sweep of fewer settings than workers goes to the attack pool, which cuts each of them into shards.
        """
        from actors.trials import run_trials

        present = self.present()
        left = [setting for setting in settings if any(True for _ in missing(setting.jobs.everything, present))]
        self.terminal.line(f"settings: {len(settings)}, {len(settings) - len(left)} reused, {len(left)} to run")
        if not left:
            return
        if len(left) < self.workers.count and sweep.measures == "attacks":
            self.attack(left)
            return
        left.sort(key=lambda setting: -setting.cost)
        names = [setting.name for setting in left]
        plans = {setting.name: setting.plan.plan_hash for setting in left}
        trial = RunSetting(plans, self.workshops(plans_of(left)), sweep.measures)
        with self.terminal.stage("settings", len(left)) as advance, self.terminal.quiet():
            space = sweep.space(names) if self.workers.count else {"setting": {"grid_search": names}}
            run_trials(space, trial, self.workers, name=sweep.name, on_progress=advance)

    def finish(self, settings: Sequence[Setting], counts: dict[str, int], sweep: Sweep | None = None) -> Result:
        """Read the scores, sum them up, write the report and track the run."""
        with self.terminal.stage("summing up", 3) as advance:
            scores = self.kind.scores(settings, self.store, pooled=bool(sweep and sweep.pooled))
            document = self.kind.document(self.name, settings, scores, self.store, self.scheduler, counts)
            document["makes"] = sweep.makes if sweep else ""
            document["seconds"] = round(time.perf_counter() - self.begin, 3)
            write_outputs(self.out, document, scores, self.plan)
            advance(1)
            self.report(document)
            advance(2)
            self.track(document)
            advance(3)
        return Result(document, scores)

    def report(self, document: Mapping[str, Any]) -> None:
        """Write the figures and the page, with thumbnails of exposed points."""
        self.kind.report(self.out, self.kind.images(document, self.scheduler.data))

    def track(self, document: dict[str, Any]) -> None:
        """Log the run; a tracking server that is away costs the tracking, not the audit."""
        from orchestrator.tracking import TrackingFailed, log_result

        try:
            with self.terminal.quiet():
                tracked = log_result(document, self.out, self.plan.tracking.uri, self.plan.tracking.experiment)
        except TrackingFailed as error:
            document["warnings"].append(f"not tracked: {error}")
            return
        document["tracking"] = tracked

    def present(self) -> dict[str, set[str]]:
        """Return what the store has, stage → keys."""
        return {stage: self.store.keys(stage) for stage in STAGES}

    def drop_damaged(self, held: Mapping[str, Sequence[str]]) -> None:
        """Read every artefact that the run refers to and drop those that are damaged."""
        from orchestrator.faults import CorruptArtefact

        present = self.present()
        wanted = [(stage, key) for stage, keys in held.items() for key in dict.fromkeys(keys) if key in present[stage]]
        dropped = 0
        with self.terminal.stage("checking the store", len(wanted)) as advance:
            for done, (stage, key) in enumerate(wanted, start=1):
                try:
                    self.store.verify(stage, key)
                except CorruptArtefact as error:
                    self.terminal.line(str(error).replace("; run again with --rebuild to compute it anew", ": dropped"))
                    self.store.drop(stage, key)
                    dropped += 1
                advance(done)
        self.terminal.line(f"store: {len(wanted)} artefacts checked, {dropped} damaged and dropped")

    def workshops(self, plans: Sequence[BasePlan]) -> OpenWorkshops:
        """Return what a worker needs to do the jobs of ``plans``."""
        values = {plan.plan_hash: plan.resolved() for plan in plans}
        return OpenWorkshops(values, self.store.uri, self.scheduler.device, self.scheduler.data.fingerprint)


def is_shared(job: Job) -> bool:
    """Is this model one that all settings of a utility sweep read: a trained or a retrained one?"""
    return job.stage == "train" or job.document["method"] == "retrain"

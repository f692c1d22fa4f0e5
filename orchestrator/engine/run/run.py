"""From a plan to a result: train and unlearn what is missing, attack, score, report, track."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.cluster import connect
from actors.jobs import Workers
from actors.pools import do_jobs
from actors.trials import run_trials
from orchestrator.engine.cost.choice import Work, choose_workers
from orchestrator.engine.data import data_of
from orchestrator.engine.jobs.job import Job, in_turn, keys_by_stage, missing
from orchestrator.engine.kind import Design, Finished, Kind
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.attempts import FAILED
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.copies import copy_warnings
from orchestrator.engine.run.output_folder import write_outputs
from orchestrator.engine.run.result_head import head
from orchestrator.engine.run.tracking import TrackingFailed, check_uri, log_result
from orchestrator.engine.run.trial import RunSetting
from orchestrator.engine.run.worker import OpenContexts
from orchestrator.engine.run.workers import AS_THEY_COME, hire
from orchestrator.engine.setting import Setting, plans_of
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.owner import this_process
from orchestrator.engine.store.probe import probed
from orchestrator.engine.store.store import Store, default_store_uri
from tune_spaces.registry import Sweep

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Result:
    """A finished run: ``document`` as in result.json and the scores table."""

    document: dict[str, Any]
    scores: pa.Table = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the content of result.json."""
        return self.document


def run_audit(kind: Kind, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False) -> Result:
    """Carry out one audit and leave result, scores, figures, report and tracking in ``out``."""
    return Run(kind, plan, out, terminal, name=f"{plan.kind}-audit", rebuild=rebuild).audit()


def run_sweep(
    kind: Kind, sweep: Sweep, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False
) -> Result:
    """Carry out every setting of ``sweep`` over one shared population and leave the same files as ``run_audit``."""
    return Run(kind, plan, out, terminal, name=sweep.name, rebuild=rebuild).sweep(sweep)


def run_tuning(
    kind: Kind, sweep: Sweep, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False
) -> dict[str, Any]:
    """Carry out a sweep of utilities and leave its table and its presets in ``out``; return the table's document."""
    return Run(kind, plan, out, terminal, name=sweep.name, rebuild=rebuild).tune(sweep)


class Run:
    """One run of a plan: where its work is kept, who does it, and what the terminal shows meanwhile."""

    def __init__(self, kind: Kind, plan: BasePlan, out: Path, terminal: Terminal, *, name: str, rebuild: bool) -> None:
        self.begin = time.perf_counter()
        self.kind = kind
        self.out = out
        self.terminal = terminal
        self.name = name
        self.rebuild = rebuild
        self.probe = ""
        self.owner = this_process()
        check_uri(plan.tracking.uri)
        self.store = Store(plan.compute.store or default_store_uri())
        data = data_of(plan.data.name, plan.data.root, plan.data.groups)
        self.plan, device, self.most = hire(plan, self.store, terminal)
        self.workers = self.most
        self.design = self.lay_out(self.plan, data, device)

    def lay_out(self, plan: BasePlan, data: Any, device: str) -> Design:
        """Return a plan laid out on data, by the run's kind."""
        return self.kind.lay_out(plan, data, device, self.store)

    def audit(self) -> Result:
        """Run the plan as it is: its one setting, or each of those that it names."""
        settings = self.laid_out(self.plan.settings())
        self.look_for_copies()
        with self.session(settings):
            counts = self.prepare(settings)
            self.attack(settings)
        return self.finish(settings, counts)

    def sweep(self, sweep: Sweep) -> Result:
        """Run every setting of a sweep; the models are those of all settings together, each trained once."""
        settings = self.laid_out(sweep.settings(self.plan.resolved()))
        self.look_for_copies()
        with self.session(settings):
            counts = self.prepare(settings)
            self.trials(sweep, settings)
        return self.finish(settings, counts, sweep)

    def tune(self, sweep: Sweep) -> dict[str, Any]:
        """Make and measure the targets of every setting of ``sweep``; no shadows, no attacks."""
        tuning = self.kind.tuning
        assert tuning is not None, f"audits of kind {self.kind.name} measure no utilities"
        settings = [
            replace(each, jobs=tuple(tuning.jobs(each.jobs)))
            for each in self.laid_out(sweep.settings(self.plan.resolved()))
        ]
        with self.session(settings):
            shared = [job for setting in settings for job in self.kind.making_models(setting.jobs)]
            todo = list(missing(filter(tuning.shared, shared), self.present()))
            if todo:
                self.populate(todo, plans_of(settings), self.kind.making[1])
            self.trials(sweep, settings)
        document = tuning.table(sweep.name, settings, self.store, self.plan)
        document["seconds"] = round(time.perf_counter() - self.begin, 3)
        tuning.write(self.out, document)
        return document

    def laid_out(self, changes: Mapping[str, Mapping[str, Any]]) -> list[Setting]:
        """Return settings (name → dotted fields that change) with their plans and jobs."""
        plans = {name: self.plan.changed(overrides) if overrides else self.plan for name, overrides in changes.items()}
        designs = {name: self.lay_out(plan, self.design.data, self.design.device) for name, plan in plans.items()}
        self.do_first(list(designs.values()))
        self.base = next(iter(designs.values()))
        return [
            Setting(name, changes[name], plans[name], tuple(design.jobs()), design.weight)
            for name, design in designs.items()
        ]

    def look_for_copies(self) -> None:
        """Warn of copies across the borders of the first setting's design; the result says so too."""
        self.copies = copy_warnings(self.base)
        for text in self.copies:
            self.terminal.line(f"warning: {text}")

    def do_first(self, designs: Sequence[Design]) -> None:
        """Do the jobs that must be done before the others can be laid out, such as a ranking of the points."""
        jobs = {job.key: job for design in designs for job in design.first_jobs()}
        self.first = list(jobs.values())
        todo = list(missing(self.first, self.present()))
        if todo:
            self.terminal.line(f"ranking: {len(self.first)} jobs, {len(self.first) - len(todo)} reused")
            present = self.present()
            self.settle_workers([(each.plan, list(missing(each.first_jobs(), present))) for each in designs])
            with self.terminal.quiet(), self.connected():
                self.populate(todo, [design.plan for design in designs], "ranking the points")

    @contextmanager
    def session(self, settings: Sequence[Setting]) -> Iterator[None]:
        """Record the run, check the store if asked, and hold one Ray cluster if there is anything left to do."""
        held = keys_by_stage([*(job for setting in settings for job in setting.jobs), *self.first])
        self.store.record_run(self.name, self.plan.deciding(), held)
        if self.rebuild:
            self.drop_damaged(held)
        self.drop_failed(held)
        present = self.present()
        left = [(each.plan, list(missing(each.jobs, present))) for each in settings]
        if not any(jobs for _, jobs in left):
            yield
            return
        self.settle_workers(left)
        with self.terminal.quiet() if self.workers.count else nullcontext(), self.connected():
            yield

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Hold the Ray cluster of the workers, and on other machines' a probe in the store; without workers neither."""
        if self.plan.compute.address:
            self.store.claims.forget_the_dead()
        probe = probed(self.store) if self.plan.compute.address else nullcontext("")
        with connect(self.workers) if self.workers.count else nullcontext(), probe as self.probe:
            yield

    def settle_workers(self, work: Work) -> None:
        """Settle who does ``work`` and say so: as many workers as the plan says, with ``auto`` what is sooner done."""
        compute, reason = self.plan.compute, ""
        if compute.workers == "auto" and compute.address is None:
            chosen = choose_workers(self.kind, work, self.design.device, self.most.count)
            self.workers = replace(self.most, count=chosen.workers)
            reason = f" ({chosen.reason}; compute.workers: auto)"
        where = f"at {compute.address}" if compute.address else "on this machine"
        count = "as many as come, each" if self.workers.count == AS_THEY_COME else f"{self.workers.count} workers"
        size = f" with {self.workers.size}" if compute.address else ""
        who = f"Ray: {count}{size} {where}" if self.workers.count else "in this process, without Ray"
        if reason or self.workers.count:
            self.terminal.line(f"{who}{reason}")

    def prepare(self, settings: Sequence[Setting]) -> dict[str, int]:
        """Train, unlearn and measure what is missing; return how many models there are, reused and made."""
        unique = {job.key: job for setting in settings for job in self.kind.making_models(setting.jobs)}
        todo = list(missing(unique.values(), self.present()))
        needed, left = Counter(job.stage for job in unique.values()), Counter(job.stage for job in todo)
        makes_models = {stage.name for stage in self.kind.stages if stage.makes == "model"}
        models, made = (sum(count[stage] for stage in makes_models) for count in (needed, left))
        to_do, title = self.kind.making
        self.terminal.line(f"population: {models} models, {models - made} reused, {made} {to_do}")
        for stage in (name for name in needed if name not in makes_models):
            done = needed[stage] - left[stage]
            self.terminal.line(f"{stage}: {needed[stage]} jobs, {done} reused, {left[stage]} to do")
        if todo:
            self.populate(todo, plans_of(settings), title)
        return {"models": models, "reused": models - made, "trained": made}

    def populate(self, jobs: Sequence[Job], plans: Sequence[BasePlan], title: str) -> None:
        """Train, unlearn and measure through one queue: a Ray Train group's, or that of actors on a cluster."""
        self.carry_out(in_turn(jobs), plans, title, self.workers)

    def carry_out(self, jobs: Sequence[Job], plans: Sequence[BasePlan], title: str, workers: Workers) -> None:
        """Do jobs of ``plans`` on ``workers`` and show how far they are."""
        stage_of = {job.key: job.stage for job in jobs}
        with self.terminal.stage(title, len(jobs)) as advance, self.terminal.quiet():
            do_jobs(
                jobs,
                self.contexts(plans),
                workers,
                on_progress=advance,
                is_done=lambda key: self.store.has(stage_of[key], key),
                tell=self.terminal.line,
            )

    def attack(self, settings: Sequence[Setting]) -> None:
        """Gather evidence and score what is missing, on actors."""
        jobs = (job for setting in settings for job in self.kind.gathering(setting.jobs))
        units = list(missing(jobs, self.present()))
        if units:
            self.carry_out(units, plans_of(settings), "attacking", replace(self.workers, engine="actors"))

    def trials(self, sweep: Sweep, settings: Sequence[Setting]) -> None:
        """Run the settings that are not yet done as Ray Tune trials, the dearest first.

        A sweep of fewer settings than workers, and every sweep on a cluster whose nodes come and go, is cut into the
        shards of its settings, for actors: a lost node then costs a shard and no trial.
        """
        present = self.present()
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
        trial = RunSetting(plans, self.contexts(plans_of(left)), sweep.measures)
        with self.terminal.stage("settings", len(left)) as advance, self.terminal.quiet():
            space = sweep.space(names) if self.workers.count else {"setting": {"grid_search": names}}
            run_trials(space, trial, self.workers, name=sweep.name, on_progress=advance)

    def finish(self, settings: Sequence[Setting], counts: dict[str, int], sweep: Sweep | None = None) -> Result:
        """Read the scores, sum them up, write the report and track the run."""
        with self.terminal.stage("summing up", 3) as advance:
            scores = self.kind.scores(settings, self.store, bool(sweep and sweep.pooled))
            finished = Finished(self.name, settings, scores, self.store, self.design, counts)
            document = {**head(finished), **self.kind.summarise(finished)}
            document["warnings"] = list(dict.fromkeys([*document["warnings"], *self.copies]))
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
        page = self.kind.open_page()
        page.write(self.out, page.images(document, lambda: self.design.data))

    def track(self, document: dict[str, Any]) -> None:
        """Log the run; a tracking server that is away costs the tracking, not the audit."""
        try:
            with self.terminal.quiet():
                tracked = log_result(
                    self.kind, document, self.out, self.plan.tracking.uri, self.plan.tracking.experiment
                )
        except TrackingFailed as error:
            document["warnings"].append(f"not tracked: {error}")
            return
        document["tracking"] = tracked

    def present(self) -> dict[str, set[str]]:
        """Return what the store has, stage → keys."""
        return self.kind.present(self.store)

    def drop_failed(self, held: Mapping[str, Sequence[str]]) -> None:
        """Drop stored scores of which an attack failed, so that it is tried again: it may have lacked memory only."""
        present = self.present()
        scores = [stage.name for stage in self.kind.stages if stage.makes == "scores"]
        wanted = [
            (stage, key) for stage in scores for key in dict.fromkeys(held.get(stage, ())) if key in present[stage]
        ]
        failed = [(stage, key) for stage, key in wanted if FAILED in self.store.get(stage, key).files]
        for stage, key in failed:
            self.store.drop(stage, key)
        if failed:
            self.terminal.line(f"score: {len(failed)} jobs in which an attack failed are done again")

    def drop_damaged(self, held: Mapping[str, Sequence[str]]) -> None:
        """Read every artefact that the run refers to and drop those that are damaged."""
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

    def contexts(self, plans: Sequence[BasePlan]) -> OpenContexts:
        """Return what a worker needs to do the jobs of ``plans``."""
        values = {plan.plan_hash: plan.resolved() for plan in plans}
        data = self.design.data.fingerprint
        return OpenContexts(self.kind, values, self.store.uri, self.design.device, data, self.probe, self.owner)

"""From a plan to a result: train and unlearn what is missing, attack, score, report, track."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.errors import how_many
from orchestrator.engine.data import data_of
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.jobs.job import keys_by_stage
from orchestrator.engine.kind import Design, Finished, Kind, Tuning, check_published
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.distinct import distinct, told_same
from orchestrator.engine.published import Published, bytes_of, listed
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.copies import copy_warnings
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.drawing import Drawing, kept_elsewhere
from orchestrator.engine.run.fingerprints import fingerprints_of
from orchestrator.engine.run.live import Live
from orchestrator.engine.run.output_folder import SWEEP_FILE, Claim, no_claim, write_document
from orchestrator.engine.run.result_head import head
from orchestrator.engine.run.search_checks import require_trials_alone
from orchestrator.engine.run.searching import Searching
from orchestrator.engine.run.standing import Left
from orchestrator.engine.run.stored_work import StoredWork
from orchestrator.engine.run.tracking import log_result
from orchestrator.engine.run.tracking_models import ToLog
from orchestrator.engine.run.tracking_places import require_places
from orchestrator.engine.run.tracking_server import TrackingFailed
from orchestrator.engine.run.tracking_stopped import Kept
from orchestrator.engine.run.workers import hire
from orchestrator.engine.setting import Setting, plans_of
from orchestrator.engine.store.inventory import size_text
from orchestrator.engine.store.store import Store, default_store_uri
from orchestrator.judgement.gate import Gate, judge_gates
from tune_spaces.registry import Settings, Sweep
from tune_spaces.space import Search

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


def run_audit(
    kind: Kind,
    plan: BasePlan,
    out: Path,
    terminal: Terminal,
    *,
    rebuild: bool = False,
    pictures: bool = True,
    aggregate_only: bool = False,
    gates: Sequence[Gate] = (),
    claim: Claim = no_claim,
) -> Result:
    """Carry out one audit and leave result, scores, figures, report and tracking in ``out``.

    ``pictures`` False: no picture of a data point is in any of them; ``aggregate_only``: nothing about a single one.
    ``gates``: the limits that the result is held to (``gate`` in result.json); ``claim``: called before any work, it
    makes ``out`` the folder of this run.
    """
    run = Run(
        kind, plan, out, terminal, name=f"{plan.kind}-audit", rebuild=rebuild, pictures=pictures, gates=gates,
        aggregate_only=aggregate_only, claim=claim,
    )  # fmt: skip
    return run.audit()


def run_sweep(
    kind: Kind,
    sweep: Sweep,
    plan: BasePlan,
    out: Path,
    terminal: Terminal,
    *,
    rebuild: bool = False,
    force: bool = False,
    pictures: bool = True,
    claim: Claim = no_claim,
    aggregate_only: bool = False,
) -> Result:
    """Carry out every setting of ``sweep`` over one shared population and leave the same files as ``run_audit``.

    ``force``: the journal of another search in ``out`` gives way.
    """
    run = Run(
        kind, plan, out, terminal, name=sweep.name, rebuild=rebuild, sweep=sweep, pictures=pictures,
        aggregate_only=aggregate_only, claim=claim,
    )  # fmt: skip
    return run.sweep(sweep, force=force)


def run_tuning(
    kind: Kind, sweep: Sweep, plan: BasePlan, out: Path, terminal: Terminal, *, rebuild: bool = False,
    claim: Claim = no_claim,
) -> dict[str, Any]:  # fmt: skip
    """Carry out a sweep of utilities and leave its table and its presets in ``out``; return the table's document."""
    return Run(kind, plan, out, terminal, name=sweep.name, rebuild=rebuild, claim=claim).tune(sweep)


class Run:
    """One run of a plan: where its work is kept, who does it, and what the terminal shows meanwhile.

    ``chooses``: whether it chooses the settings of which it asks the targets.
    """

    chooses = False

    def __init__(
        self,
        kind: Kind,
        plan: BasePlan,
        out: Path,
        terminal: Terminal,
        *,
        name: str,
        rebuild: bool,
        sweep: Sweep | None = None,
        gates: Sequence[Gate] = (),
        pictures: bool = True,
        aggregate_only: bool = False,
        claim: Claim = no_claim,
    ) -> None:
        self.begin, self.claim = time.perf_counter(), claim
        self.gates = gates
        self.kind, self.name, self.out, self.terminal = kind, name, out, terminal
        self.rebuild, self.pictures, self.aggregate_only = rebuild, pictures and not aggregate_only, aggregate_only
        check_published(kind, plan)
        if moved := require_places(plan.tracking.uri, plan.tracking.experiment, out):
            terminal.line(moved)
        plan = with_digests(plan)
        self.store = Store(plan.compute.store or default_store_uri())
        self.stored = StoredWork(kind, self.store, terminal)
        data = data_of(plan.data.name, plan.data.root, plan.data.groups)
        for note in data.notes:
            terminal.line(note)
        last_gpu = self.store.recorded_gpu(name, plan.deciding()) if plan.compute.address else ""
        self.plan, device, most = hire(plan, self.store, terminal, partial(self.is_done, sweep, data), last_gpu)
        self.design = self.lay_out(self.plan, data, device)
        self.crew = Crew(kind, self.design, most, self.stored, terminal)
        kept = Kept(aggregate_only, self.pictures)
        self.live = Live(kind, name, self.design.plan, out, self.store, terminal, kept)
        self.drawing = Drawing(out, private=False)
        self.logged: list[Published] = []

    def lay_out(self, plan: BasePlan, data: Any, device: str) -> Design:
        """Return a plan laid out on data, by the run's kind."""
        return self.kind.lay_out(plan, data, device, self.store)

    def is_done(self, sweep: Sweep | None, data: Any, plan: BasePlan, device: str) -> bool:
        """Return whether the store has everything that a plan, or a sweep around it, needs on ``device``."""
        if self.rebuild or (sweep and sweep.search and sweep.search.adaptive):
            return False
        settings = distinct(sweep.settings(plan.resolved()), plan)[0] if sweep else plan.settings()
        for changes in settings.values():
            design = self.lay_out(with_digests(plan.changed(changes)) if changes else plan, data, device)
            if self.stored.lacks(design.first_jobs()) or self.stored.lacks(design.jobs()):
                return False
        return True

    def audit(self) -> Result:
        """Run the plan as it is: its one setting, or each of those that it names."""
        with self.live:
            settings = self.laid_out(self.plan.settings())
            self.look_for_copies()
            self.tell_models(settings)
            with self.session(settings):
                counts = self.crew.prepare(settings)
                self.crew.attack(settings)
            return self.finish(settings, counts)

    def sweep(self, sweep: Sweep, *, force: bool = False) -> Result:
        """Run every setting of a sweep; the models are those of all settings together, each trained once."""
        if sweep.search and sweep.search.adaptive:
            return self.search(sweep, sweep.search, force=force)
        with self.live:
            settings = self.laid_out(self.settings_of(sweep))
            self.look_for_copies()
            self.tell_models(settings)
            with self.session(settings):
                counts = self.crew.prepare(settings)
                if sweep.ahead and self.plan.compute.address is None:
                    self.ahead(settings, counts)
                self.crew.trials(sweep, settings)
            return self.finish(settings, counts, sweep)

    def ahead(self, settings: Sequence[Setting], counts: dict[str, int]) -> None:
        """Do the first of several settings and print its tables, unless all are done."""
        first = settings[:1]
        if not self.stored.lacks(job for setting in settings for job in setting.jobs):
            return
        self.crew.attack(first)
        finished = Finished(
            self.name, first, self.kind.scores(first, self.store, False), self.store, self.design, counts
        )
        self.terminal.line(f"setting {first[0].name}, before the other {len(settings) - 1}:")
        for table in self.kind.open_page().tables({**head(finished), **self.kind.summarise(finished)}):
            self.terminal.table(table)

    def search(self, sweep: Sweep, search: Search, *, force: bool) -> Result:
        """Run the trials of a search, each chosen by what earlier ones came to; whole ones are the settings."""
        require_trials_alone(self.plan)
        with self.live:
            (base,) = self.laid_out({"base": {}})
            self.look_for_copies()
            self.tell_models([base], " for each setting that is audited whole")
            lay_out = partial(self.lay_out, data=self.design.data, device=self.design.device)
            trials = Searching(
                self.name, self.kind, search, self.plan, lay_out, self.crew, self.live, self.terminal, self.out
            )
            self.crew.check_targets([base])
            trials.begin(base, force=force, claim=self.claim)
            with self.session([trials.shared], more=trials.left, kept=trials.kept):
                self.crew.prepare([trials.shared])
                trials.run()
                settings = trials.whole()
                counts = trials.counts(settings)
                self.crew.complete(settings)
            return self.finish(settings, counts, sweep, trials.document())

    def tune(self, sweep: Sweep) -> dict[str, Any]:
        """Make and measure the targets of every setting of ``sweep``; no shadows, no attacks."""
        tuning = self.kind.tuning
        assert tuning is not None, f"audits of kind {self.kind.name} measure no utilities"
        with self.live:
            laid_out = self.laid_out(self.settings_of(sweep))
            settings = [replace(each, jobs=tuple(tuning.jobs(each.jobs))) for each in laid_out]
            with self.session(settings, tuning):
                models = [job for setting in settings for job in self.kind.making_models(setting.jobs)]
                alone = self.plan.compute.workers_per_model == 1  # else a trial, which is alone, can make none of them
                todo = self.stored.lacks(filter(tuning.shared, models) if alone else models)
                if todo:
                    self.crew.populate(todo, plans_of(settings), self.kind.making[1])
                self.crew.trials(sweep, settings)
            self.live.summing_up()
            document = tuning.table(sweep.name, settings, self.store, self.plan)
            document["seconds"] = round(time.perf_counter() - self.begin, 3)
            tuning.write(self.out, document)
            self.live.page.finished({row["setting"]: {"distance": row["distance"]} for row in document["rows"]})
        return document

    def settings_of(self, sweep: Sweep) -> Settings:
        """Return the settings of a sweep, those that are equal in all fields once; a line says so."""
        settings, same = distinct(sweep.settings(self.plan.resolved()), self.plan)
        if same:
            self.terminal.line(told_same(same))
        return settings

    def laid_out(self, changes: Mapping[str, Mapping[str, Any]]) -> list[Setting]:
        """Return settings (name → dotted fields that change) with their plans and jobs."""
        plans = {
            name: with_digests(self.plan.changed(values)) if values else self.plan for name, values in changes.items()
        }
        designs = {name: self.lay_out(plan, self.design.data, self.design.device) for name, plan in plans.items()}
        self.do_first(list(designs.values()))
        self.base = next(iter(designs.values()))
        return [
            Setting(name, changes[name], plans[name], tuple(design.jobs()), design.weight)
            for name, design in designs.items()
        ]

    def look_for_copies(self) -> None:
        """Warn of copies across the borders of the first setting's design; the result says so too."""
        self.copies = copy_warnings(self.base, named=not self.aggregate_only)
        for text in self.copies:
            self.terminal.line(f"warning: {text}")

    def do_first(self, designs: Sequence[Design]) -> None:
        """Do the jobs that must be done before the others can be laid out, such as a ranking of the points."""
        jobs = {job.key: job for design in designs for job in design.first_jobs()}
        self.first = list(jobs.values())
        if self.rebuild:
            self.stored.drop_damaged(keys_by_stage(self.first))
        todo = self.stored.lacks(self.first)
        if todo:
            self.claim()
            self.terminal.line(f"ranking: {how_many(len(self.first), 'job')}, {len(self.first) - len(todo)} reused")
            self.crew.settle([(each.plan, self.stored.lacks(each.first_jobs())) for each in designs])
            with self.terminal.quiet(), self.crew.connected():
                self.watch([Setting("", {}, self.plan, tuple(self.first))], [todo], what="ranking the points")
                self.crew.populate(todo, [design.plan for design in designs], "ranking the points")

    @contextmanager
    def session(
        self,
        settings: Sequence[Setting],
        tuning: Tuning | None = None,
        more: Sequence[Setting] = (),
        kept: Sequence[Setting] = (),
    ) -> Iterator[None]:
        """Record the run, check the store if asked, and hold one Ray cluster if there is anything left to do.

        ``more``: settings that stand for work beyond that of ``settings``; ``kept``: those of an earlier process.
        """
        known = [*settings, *kept]
        held = keys_by_stage([*(job for setting in known for job in setting.jobs), *self.first])
        gpu = (self.plan.compute.gpu or "") if self.design.device != "cpu" else ""
        unrecorded = self.stored.record(self.name, self.plan, held, gpu)
        if self.rebuild:
            self.stored.drop_damaged(held)
            self.crew.drop_planted(settings)
        self.stored.drop_failed(held)
        if not unrecorded:
            self.crew.check_targets(settings)
            self.claim()
            self.crew.bring_in(settings)
        left = [(each.plan, self.stored.lacks(each.jobs)) for each in settings]
        work = [*left, *((each.plan, self.stored.lacks(each.jobs)) for each in more)]
        if not more and not any(jobs for _, jobs in left):
            if unrecorded:
                self.claim()
                self.terminal.line(f"warning: the run is not recorded, nothing being left to do: {unrecorded}")
            yield
        elif unrecorded:
            raise unrecorded
        else:
            self.crew.settle(work)
            with self.terminal.quiet() if self.crew.workers.count else nullcontext(), self.crew.connected():
                self.watch(settings, [jobs for _, jobs in left], tuning=tuning)
                yield
        self.stored.known.publish()

    def finish(
        self,
        settings: Sequence[Setting],
        counts: dict[str, int],
        sweep: Sweep | None = None,
        search: Mapping[str, Any] | None = None,
        main: str = "",
    ) -> Result:
        """Read the scores, sum them up, write the report and track the run.

        ``search``: what is told of its trials; ``main``: see ``Finished``.
        """
        with self.terminal.stage("summing up", 3, alike=False) as advance:
            self.live.summing_up()
            scores = self.kind.scores(settings, self.store, bool(sweep and sweep.pooled))
            trade = sweep.trade if sweep else None
            adaptive = self.chooses or search is not None
            finished = Finished(self.name, settings, scores, self.store, self.design, counts, trade, adaptive, main)
            beside = {**self.beside(finished), **({} if search is None else {"search": search})}
            finished = replace(finished, beside=beside)
            document = {**head(finished), **self.kind.summarise(finished)}
            document["fingerprints"] = asdict(fingerprints_of(self.kind, scores, self.design.data))
            document["warnings"] = list(dict.fromkeys([*document["warnings"], *self.copies]))
            document["notes"] = list(dict.fromkeys([*document["notes"], *self.design.data.notes]))
            document["makes"] = sweep.makes if sweep else ""
            if sweep is not None and sweep.text:
                document["file"] = SWEEP_FILE
            page = self.kind.open_page()
            if self.aggregate_only:
                document = page.aggregates(document)
                document["warnings"] += kept_elsewhere(self.out)
            elif not self.pictures:
                document = page.without_pictures(document)
            if self.gates:
                document["gate"] = judge_gates(self.gates, self.kind.headline, self.plan, document).to_json()
            document["seconds"] = round(time.perf_counter() - self.begin, 3)
            document["date"] = datetime.now(UTC).isoformat(timespec="seconds")
            with Drawing(self.out, private=self.aggregate_only) as self.drawing:
                self.drawing.write(document, scores, self.plan)
                self.live.page.result_written()
                advance(1)
                self.report(document)
                self.drawing.publish()
                self.live.page.report_written()
                advance(2)
                self.logged = self.models_to_log(settings)
                self.track(document)
                advance(3)
        return Result(document, scores)

    def beside(self, finished: Finished) -> dict[str, Any]:
        """Return what result.json says beside what all runs of the kind do: nothing."""
        return {}

    def report(self, document: Mapping[str, Any]) -> None:
        """Write the figures and the page, with thumbnails of exposed points unless pictures stay away."""
        page = self.kind.open_page()
        page.write(self.drawing.folder, page.images(document, lambda: self.design.data) if self.pictures else None)

    def watch(self, settings: Sequence[Setting], left: Left, what: str = "", tuning: Tuning | None = None) -> None:
        """Show how far ``settings`` are; track it, unless it is ``what`` comes first or what ``tuning`` measures."""
        compare = tuning.comparison if tuning else self.kind.comparison
        self.live.begin(settings, left, compare, tracked=not (what or tuning), what=what)

    def models_to_log(self, settings: Sequence[Setting]) -> list[Published]:
        """Return the models of ``settings`` that the plan wants in MLflow."""
        which = self.plan.tracking.log_models
        if which == "none":
            return []
        data, device = self.design.data, self.design.device
        return listed(
            which, {each.name: self.kind.published(self.lay_out(each.plan, data, device)) for each in settings}
        )

    def tell_models(self, settings: Sequence[Setting], each: str = "") -> None:
        """Say how many models will be logged, and what room their weights take; ``each``: words for a part of a run."""
        if models := self.models_to_log(settings):
            some = f"{len(models)} model{'s' * (len(models) > 1)}"
            self.terminal.line(f"MLflow gets {some}, {size_text(bytes_of(models))} of weights{each}, less those it has")

    def track(self, document: dict[str, Any]) -> None:
        """Log the run; a tracking server that is away costs the tracking, not the audit."""
        try:
            with self.terminal.quiet():
                self.live.tracking.stop()
                where = self.plan.tracking
                to_log = ToLog(self.logged, self.plan, self.store) if self.logged else None
                tables = self.kind.open_page().csv(self.drawing.folder)
                tracked = log_result(self.kind, document, self.out, where.uri, where.experiment, to_log, tables)
        except TrackingFailed as error:
            document["warnings"].append(f"not tracked: {error}")
            write_document(self.out, document)
            self.kind.open_page().warn(self.out, document["warnings"])
            return
        document["tracking"] = tracked

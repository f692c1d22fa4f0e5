"""A kind of audit as the engine is handed it: one frozen value, pickled by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from audits.errors import BadInput
from audits.registry import Registry
from orchestrator.engine.jobs.job import Job
from orchestrator.judgement.lines import Headline

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.data.dataset import Dataset
    from audits.data.duplicates import Borders
    from audits.statistics.judged import Judged
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.progress import Progress
    from orchestrator.engine.published import Published
    from orchestrator.engine.queries import Queries
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store
    from orchestrator.engine.timings import Timings

Images = Mapping[int, Any]
"""Pictures of data points by point id."""

Files = Mapping[str, bytes]
"""The files of one artefact by name."""

Body = Callable[[Any, Job], Files]
"""What a stage does: reads artefacts through a ``WorkerContext``, calls audits, returns the files of one artefact."""


@dataclass(frozen=True)
class Stage:
    """One stage of a kind: ``makes`` says what its artefacts are.

    Models and measurements of models are made by one queue that Ray Train serves; evidence and scores by plain
    actors or by trials of a sweep. What a run is given, such as files of a user's model, its driver brings in before
    any of these, so that workers elsewhere need not see the files.
    """

    name: str
    body: Body
    makes: Literal["given", "model", "measurement", "evidence", "scores"]


class Design(Protocol):
    """A plan laid out on its data: its jobs, in an order in which each stands behind those that it needs."""

    plan: Any
    data: Dataset
    device: str

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know about the design."""
        ...

    def borders(self) -> Borders | None:
        """Return which points the design keeps apart, and which it asks about; None: nobody looks for copies."""
        ...

    @property
    def weight(self) -> int:
        """A rough measure of the work after training, by which the dearest settings of a sweep go first."""
        ...

    def first_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that must be done before the others can be laid out; none for most plans."""
        ...

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan but the first ones."""
        ...

    def priced(self) -> Design:
        """Return the design itself, or one of jobs of the same sizes where the first jobs are not done yet."""
        ...

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        ...


class Probe(Protocol):
    """Guesses what jobs of a plan take where the store knows none like them."""

    def seconds(self, job: Job) -> float:
        """Return the seconds that a job takes on one worker."""
        ...

    def size(self, job: Job) -> int:
        """Return the bytes of a job's artefact."""
        ...


class Page(Protocol):
    """The page of a kind's results; its module is loaded by the driver only."""

    def write(self, out: Path, images: Images | None) -> Path:
        """Write the figures and the page of the run in ``out``; return the page's file."""
        ...

    def images(self, document: Mapping[str, Any], data: Callable[[], Dataset]) -> Images:
        """Return the pictures that the page shows, by point id; reads ``data`` only where it shows any."""
        ...

    def without_pictures(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result without pictures of points, which says that it has none."""
        ...

    def aggregates(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result without rows, scores and pictures of single points, which says so."""
        ...

    def warn(self, out: Path, warnings: Sequence[str]) -> None:
        """Put ``warnings`` into the page in ``out``, in place of those that it has."""
        ...

    def in_progress(self, progress: Progress) -> str:
        """Return the page of a run that is not finished."""
        ...

    def markdown(self, out: Path) -> str:
        """Return the tables of the run in ``out`` as Markdown."""
        ...

    def csv(self, out: Path) -> Mapping[str, str]:
        """Return the tables of the run in ``out`` as CSV, by name: the files of a tracked run."""
        ...

    def tables(self, document: Mapping[str, Any]) -> list[Any]:
        """Return the tables for a terminal (rich)."""
        ...

    def html_tables(self, document: Mapping[str, Any]) -> list[str]:
        """Return the tables for a notebook, as HTML elements."""
        ...

    def closing_lines(self, document: Mapping[str, Any]) -> list[str]:
        """Return the last lines on a terminal: the verdict, and what a reader of the tables must know before it."""
        ...


@dataclass(frozen=True)
class Tuning:
    """How a kind measures the utility of settings instead of attacking them (``Sweep.measures``: utility).

    ``jobs`` keeps the jobs that make and measure targets, ``shared`` says which of them all settings read; ``row`` is
    the measure of one setting (``setting`` and ``distance`` are among it), ``table`` the document of all (``rows``),
    ``write`` leaves it in a folder, ``show`` prints it.
    """

    jobs: Callable[[Sequence[Job]], Sequence[Job]]
    shared: Callable[[Job], bool]
    row: Callable[[Setting, Store], Mapping[str, Any]]
    table: Callable[[str, Sequence[Setting], Store, Any], dict[str, Any]]
    write: Callable[[Path, Mapping[str, Any]], None]
    show: Callable[[Any, Mapping[str, Any], Path], None]

    def comparison(self, setting: Setting, store: Store) -> dict[str, float]:
        """Return the number by which settings are compared."""
        return {"distance": self.row(setting, store)["distance"]}


def as_it_is(plan: Any, metric: str = "") -> Any:
    """Return the plan itself: its own design has the jobs of a rehearsal, and a choice is about all of it."""
    return plan


def shares(metric: str) -> tuple[float, float]:
    """Return the range of a share or an AUC."""
    return 0.0, 1.0


@dataclass(frozen=True)
class Selection:
    """How a kind chooses among settings of an attack without asking a target (``orch tune``).

    ``metrics(plan)``: the numbers that can be chosen by. ``refusal(plan, metric)``: why a plan allows no choice by one
    of them, or ""; ``unscored(plan, metric)``: why a setting with this plan gets no score, or "". ``fields``: the
    plan's fields, or sections, that settings may change; ``defended``: those of them that a defender decides, among
    whose settings the lowest score may be chosen.

    ``own(plan)``: the plan without what no choice is about. A rehearsal has the plan ``rehearsed(plan, metric)``, which
    ``kind`` lays out (its place; "" for the kind itself); ``jobs(design, metric)`` are those behind a score.
    ``values(setting, store, metric)``: ``unit`` of the design → its score, where it has one. ``on_targets(setting,
    scores, metric)``: target → its value, of a scores table. ``within(metric)``: the range of values, at which
    intervals end.

    ``over``: the unit of ``on_targets``; ``players``: what is in the place of targets, in words; ``apart``: why its
    scores are not those of targets even without a choice.
    """

    metrics: Callable[[Any], Sequence[str]]
    refusal: Callable[[Any, str], str]
    unscored: Callable[[Any, str], str]
    fields: tuple[str, ...]
    jobs: Callable[[Any, str], Sequence[Job]]
    values: Callable[[Setting, Store, str], Mapping[int, float]]
    on_targets: Callable[[Setting, pa.Table, str], Mapping[int, float]]
    unit: str
    players: str
    apart: str
    rehearsed: Callable[[Any, str], Any] = as_it_is
    own: Callable[[Any], Any] = as_it_is
    kind: str = ""
    within: Callable[[str], tuple[float, float]] = shares
    over: str = "target"
    defended: tuple[str, ...] = ()


OWN: Final = "own"
SHARED: Final = "shared"


@dataclass(frozen=True)
class ScoresTable:
    """How a kind's scores table reads as what each attack said of points, beside the truth.

    ``columns``: those by which such a table is recognised. ``orch score`` judges what ``read`` returns, and ``orch
    compare`` compares it between runs. ``method``: the column of what was attacked (unlearning methods, arms), whose
    values begin the names of attacks, "" for none; ``controls``: those of its values that every run has. ``shadows``:
    ``OWN`` where each unit of an interval (a target, a pool) has shadow models of its own, ``SHARED`` where all targets
    have the same ones, else the column that names those of a row's target.
    """

    columns: frozenset[str]
    read: Callable[[pa.Table], list[Judged]]
    method: str = ""
    controls: tuple[str, ...] = ()
    shadows: str = OWN


@dataclass(frozen=True)
class Finished:
    """A run whose jobs are done, before it is summed up: ``counts`` are models needed, reused and trained.

    ``trade``: that of the sweep. ``main``: the setting that tables, verdict and controls are about, where the run chose
    one without asking targets; "" leaves it to ``main_setting``. ``adaptive``: settings were chosen by what earlier
    ones came to, or before targets were asked, so that permuted labels do not tell what the best of them would reach by
    chance. ``beside``: what result.json says of a choice or a search.
    """

    name: str
    settings: Sequence[Setting]
    scores: pa.Table = field(repr=False)
    store: Store
    design: Any
    counts: Mapping[str, int]
    trade: tuple[str, str] | None = None
    adaptive: bool = False
    main: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)


def nothing_beforehand(plan: Any, jobs: Sequence[Job], device: str) -> tuple[str, ...]:
    """Return no lines about what jobs will take."""
    return ()


def unknown_beforehand(plan: Any) -> tuple[str, ...]:
    """Return no names of numbers by which settings are compared: they are not known before there is a result."""
    return ()


StandIns = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the numbers that fields of a plan stand for where they are null; both are path → value."""


def nothing_stands_in(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return no values for fields that are null."""
    return {}


def nothing_published(design: Any) -> Sequence[Published]:
    """Return no models: there are none to log."""
    return ()


@dataclass(frozen=True)
class Kind:
    """What differs between audits; everything else is the engine's.

    ``place``: the name by which a worker process finds the value again, ``package.module:NAME``.
    ``check(raw, notes)`` returns the checked plan of a plain mapping or raises ``PlanProblems``; ``fits(plan, absent)``
    refuses a plan that does not fit its data (``absent``: data whose size is known need not be there).
    ``design(plan, data, device, store, stages)`` lays a plan out. ``making``: what is done to models, in words ("720 to
    train"), and the title of its bar. ``probe(plan, device, timings)`` and ``queries(settings)`` serve ``orch cost``.
    ``scores(settings, store, pooled)`` returns the scores table, ``summarise(finished)`` what result.json says beside
    the fields of all kinds (``result_head.head``): its ``table`` and what else there is. ``comparison(setting, store)``
    returns the numbers by which a sweep compares settings, ``compared(plan)`` the names that they can have before
    anything runs (() where that is not known), ``metrics(document, setting)`` the numbers that are tracked,
    ``main_setting(document)`` the setting that a reader wants first. ``headline`` is what limits of ``--fail-above``
    can name. ``page`` names the module that is the ``Page``, ``registries`` what ``orch ls`` lists of the kind.
    ``judged`` reads its scores table for ``orch score`` and ``orch compare``, which refuse the kind without it; so does
    ``orch tune`` without ``selection``. ``published(design)``: the models that it judges, for ``--log-models``, which
    is refused without it. ``stand_ins(plan)``: the number that a field which is null stands for, by path, where that is
    known; ``plan``: path → value. ``before(plan, jobs, device)``: lines for the terminal of a run that is about to do
    ``jobs``, where they will take long.
    """

    place: str
    name: str
    question: str
    default_plan: str
    check: Callable[[Mapping[str, Any], tuple[str, ...]], BasePlan]
    fits: Callable[[Any, bool], None]
    design: Callable[[Any, Dataset, str, Store | None, tuple[Stage, ...]], Design]
    stages: tuple[Stage, ...]
    probe: Callable[[Any, str, Timings], Probe]
    queries: Callable[[Sequence[tuple[Any, Sequence[Job]]]], Iterator[Queries]]
    scores: Callable[[Sequence[Setting], Store, bool], pa.Table]
    summarise: Callable[[Finished], dict[str, Any]]
    comparison: Callable[[Setting, Store], dict[str, float]]
    metrics: Callable[[Mapping[str, Any], str], dict[str, float]]
    main_setting: Callable[[Mapping[str, Any]], str]
    headline: Headline
    page: str
    registries: Mapping[str, Registry[Any]] = field(default_factory=dict)
    making: tuple[str, str] = ("to train", "training")
    tuning: Tuning | None = None
    judged: ScoresTable | None = None
    selection: Selection | None = None
    compared: Callable[[Any], Sequence[str]] = unknown_beforehand
    published: Callable[[Any], Sequence[Published]] = nothing_published
    stand_ins: StandIns = nothing_stands_in
    before: Callable[[Any, Sequence[Job], str], Sequence[str]] = nothing_beforehand

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return load, (self.place,)

    def lay_out(self, plan: BasePlan, data: Dataset, device: str, store: Store | None = None) -> Design:
        """Return ``plan`` laid out on ``data``, for work on ``device`` ("cpu" or "cuda")."""
        return self.design(plan, data, device, store, self.stages)

    def stage(self, name: str) -> Stage:
        """Return the stage ``name``; raises KeyError for one that the kind does not have."""
        return self._by_name[name]

    @property
    def _by_name(self) -> dict[str, Stage]:
        return {stage.name: stage for stage in self.stages}

    def present(self, store: Store) -> dict[str, set[str]]:
        """Return what ``store`` has of the kind's stages, stage → keys."""
        return {stage.name: store.keys(stage.name) for stage in self.stages}

    def making_models(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs that make or measure models: those of the training queue."""
        return [job for job in jobs if self.stage(job.stage).makes in ("model", "measurement")]

    def brought_in(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs that bring in what a run is given: those of its driver."""
        return [job for job in jobs if self.stage(job.stage).makes == "given"]

    def gathering(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs that gather evidence or score it: those of plain actors."""
        return [job for job in jobs if self.stage(job.stage).makes in ("evidence", "scores")]

    def open_page(self) -> Page:
        """Return the kind's page; imports what draws it."""
        found: Page = load(self.page)
        return found


def load(place: str) -> Any:
    """Return the object that ``package.module:NAME`` names, or a module; raises ``BadInput`` where there is none."""
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
        return getattr(found, name) if name else found
    except (ModuleNotFoundError, AttributeError) as error:
        raise BadInput(f"{place!r} cannot be loaded: {error}; write it as package.module:NAME") from None


def check_published(kind: Kind, plan: BasePlan) -> None:
    """Refuse to log models of a kind that has none to give."""
    if plan.tracking.log_models != "none" and kind.published is nothing_published:
        raise BadInput(
            f"tracking.log_models is {plan.tracking.log_models}, but audits of kind {kind.name} have no models to log; "
            "leave it out, or give none"
        )

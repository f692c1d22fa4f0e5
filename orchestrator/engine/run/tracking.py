"""MLflow tracking: a finished run's files become one parent run with a child run for each setting.

Everything is logged by the driver from result files, in batches. Metric names (``gradient_ascent.apollo.auc``) are the
same in every child, so that the UI compares settings column by column.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.credentials import reveal
from audits.data.regular import opened
from audits.writing import make_folder, write_whole
from orchestrator.engine.kind import Kind, StandIns, nothing_stands_in
from orchestrator.engine.media import markdown, visible
from orchestrator.engine.run.search_result import VALUE, TrialNews, told_of
from orchestrator.engine.run.tracking_again import finished_before, keep_finished
from orchestrator.engine.run.tracking_database import make_database
from orchestrator.engine.run.tracking_headline import headline_of, tags_of
from orchestrator.engine.run.tracking_models import ToLog, log_models
from orchestrator.engine.run.tracking_names import NOTE, allowed_name, effective, flatten, plan_hash
from orchestrator.engine.run.tracking_places import Kept, experiment_in, file_of, look_again, own_place, require_allowed
from orchestrator.engine.run.tracking_server import reached
from orchestrator.engine.run.tracking_stopped import (
    OF,
    OPEN_FILE,
    PARENT,
    RUNNING,
    STATE,
    Subject,
    end_children,
    subject_of,
    text_of,
    unfinished,
)
from orchestrator.engine.run.tracking_uri import resolve_uri
from orchestrator.engine.run.tracking_view import arrange, views_of
from orchestrator.engine.store.payloads import pack_table
from orchestrator.judgement.gate_result import GateResult

if TYPE_CHECKING:
    from mlflow import MlflowClient

FILES = ("result.json", "scores.parquet", "plan.yaml", "report.html")
METRICS_A_REQUEST, PARAMS_A_REQUEST = 900, 90  # below the server's limits of 1000 and 100


def log_result(
    kind: Kind,
    result: Mapping[str, Any],
    out: Path,
    uri: str | None,
    experiment: str,
    models: ToLog | None = None,
    tables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Log a finished run and return ``{"uri", "experiment", "parent", "children": {setting: run id}, "page"}``.

    "page" is the end of the address at which MLflow's page shows the run: settings compared, or the list of audits.
    With ``models`` "models" tells of those (``Logged``).

    ``out`` holds result.json, scores.parquet (unless the run keeps aggregates only), plan.yaml, report.html and
    figures/. ``tables``: its tables as CSV, by name, where they are not to be made from ``out``.
    Artifacts go to ``mlartifacts`` beside a database file, and in ``out`` of other databases. A parent that is still
    open for ``out`` is filled and ended. Else a finished parent of the same run in ``out`` is filled anew
    (``tracking_again``), or one that was stopped goes on (``tracking_stopped``); a run that is repeated elsewhere is
    another one with the same ``orch.plan_hash`` tag.
    Raises BadInput for an unusable URI, TrackingFailed when MLflow cannot be reached or refuses something.
    """
    where = resolve_uri(uri, out)
    experiment = experiment_in(uri, where, experiment, out)
    with reached(where, f"{out} is complete"):
        run = open_run(subject_of(kind, result), out, where, experiment, result, named=uri)
        try:
            page = _log_runs(run, kind, result, out, tables)
            logged = log_models(run.client, run.experiment, run.children, run.parent, models) if models else None
        except BaseException as error:
            run.end(status_after(error))
            raise
        run.end("FINISHED", result)
        told = {"uri": where, "experiment": experiment, "parent": run.parent, "children": run.children}
        return {**told, "page": page, **({"models": logged.to_json()} if logged else {})}


def status_after(error: BaseException) -> str:
    """Return how MLflow calls a run that ended by ``error``."""
    return "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"


@dataclass(frozen=True)
class OpenRun:
    """A parent run that is RUNNING, with the children that it has so far (setting → run id).

    ``params``: the plan as path → value, ``stand_ins``: what its nulls stand for.
    ``again``: it had finished, and so had its children; numbers, tags and files are logged anew, and nothing else.
    Of an earlier process: ``logged`` names the parameters that runs have, ``ended`` the children that it cut.
    """

    client: MlflowClient
    experiment: str
    parent: str
    tags: Mapping[str, str]
    params: Mapping[str, Any]
    out: Path
    children: dict[str, str]
    again: bool = False
    logged: Mapping[str, Collection[str]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    stand_ins: StandIns = nothing_stands_in

    def log_params(self) -> None:
        """Log the parameters of the parent."""
        if not self.again:
            _fill(self.client, self.parent, self._missing(self.parent, self._params()), {})

    def log_parent(self, values: Mapping[str, float]) -> None:
        """Log metrics of the parent."""
        _fill(self.client, self.parent, {}, values)

    def log_child(self, name: str, overrides: Mapping[str, Any], values: Mapping[str, float]) -> str:
        """Log the metrics of a setting, whose child run is made if there is none, and finish it; return its id.

        A number that the child has from the time when the run went on, and that is not among ``values``, is void now;
        not so what a trial of a search was compared by.
        """
        former = self.client.get_run(self.children[name]).data.metrics if name in self.children else {}
        void = {metric: math.nan for metric in former if not is_value(metric)}
        named = {allowed_name(metric): value for metric, value in values.items()}
        params = self._params({**flatten(overrides), "setting": name})
        child = self.fill_child(name, params, {**void, **named})
        self.end_child(child, "FINISHED")
        return child

    def fill_child(self, name: str, params: Mapping[str, Any], values: Mapping[str, float], step: int = 0) -> str:
        """Log to a child run, which is made if there is none; return its id."""
        if name not in self.children:
            tags = {**self.tags, "orch.level": "setting", PARENT: self.parent}
            self.children[name] = _start(self.client, self.experiment, name, tags)
        child = self.children[name]
        if child in self.ended:
            self.client.update_run(child, status="RUNNING")
            self.ended.remove(child)
        _fill(self.client, child, {} if self.again else self._missing(child, params), values, step)
        return child

    def _params(self, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the parameters of the plan with ``changes``, as they take effect."""
        return effective({**self.params, **(changes or {})}, self.stand_ins)

    def _missing(self, run: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that a run has not: MLflow takes no other value, as of workers, for those that it has.

        They are those of the process that began the run.
        """
        had = self.logged.get(run, ())
        return {name: value for name, value in params.items() if allowed_name(name) not in had}

    def end_child(self, child: str, status: str) -> None:
        """End a child, unless it had ended when the run was finished for the first time."""
        if not self.again:
            self.client.set_terminated(child, status)

    def steps_of(self, name: str) -> set[int]:
        """Return the steps at which a child, if it is there, has values of a trial."""
        if name not in self.children:
            return set()
        metrics = [metric for metric in self.client.get_run(self.children[name]).data.metrics if is_value(metric)]
        found = (self.client.get_metric_history(self.children[name], metric) for metric in metrics)
        return {entry.step for history in found for entry in history}

    def log_trial(self, trial: TrialNews, before: TrialNews | None = None) -> None:
        """Log what is new of a trial of a search since it was logged as ``before``: its state, a step for each rung."""
        known = set(before.values) if before else self.steps_of(trial.name)
        changed = {**flatten(trial.changes), "setting": trial.name, "trial": trial.number}
        child = self.fill_child(trial.name, {} if before else self._params(changed), {})
        for parts, values in trial.values.items():
            if parts not in known:
                self.fill_child(trial.name, {}, values, step=parts)
        self.client.set_tag(child, STATE, trial.state)
        if trial.state != RUNNING:
            self.end_child(child, "FAILED" if trial.state == "failed" else "FINISHED")

    def stale_limits(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return metrics of the parent about limits that are not among ``numbers`` any more: they are void."""
        known = {allowed_name(name) for name in numbers}
        metrics = self.client.get_run(self.parent).data.metrics if self.again else {}
        return {name: math.nan for name in metrics if name.startswith("gate.") and name not in known}

    def tag_parent(self, tags: Mapping[str, str]) -> None:
        """Tag the parent, and take away what an earlier call said of its gate."""
        tags = {allowed_name(name): visible(told, "\n") for name, told in tags.items()}
        for name in self.client.get_run(self.parent).data.tags:
            if f"{name}.".startswith("orch.gate.") and name not in tags:
                self.client.delete_tag(self.parent, name)
        for name, told in tags.items():
            self.client.set_tag(self.parent, name, told)

    def tag_worst(self, run: str, worst: str) -> None:
        """Tag a run with the name of its worst line, if it has one."""
        if worst:
            self.client.set_tag(run, "orch.worst", visible(worst))

    def end(self, status: str, result: Mapping[str, Any] | None = None) -> None:
        """End the parent; one that is not FINISHED goes on when the run does.

        After a finished one the next run opens another, unless it is the run of this ``result`` once more.
        """
        if self.again:
            return
        if status != "FINISHED":
            end_children(self.client, self.children.values(), status)
        self.client.set_terminated(self.parent, status)
        if status != "FINISHED":
            return
        if result is not None:
            keep_finished(self.out, self.out / OPEN_FILE, result)
        (self.out / OPEN_FILE).unlink(missing_ok=True)


def open_run(
    subject: Subject,
    out: Path,
    uri: str,
    experiment: str,
    result: Mapping[str, Any] | None = None,
    *,
    named: str | None = None,
) -> OpenRun:
    """Return the parent run of ``subject`` in ``out``: that of an earlier process which did not finish, else a new one.

    What that process was tracking stands in a file in ``out``. If it was another run, with another plan or settings
    that this one does not have, its parent ends as KILLED. With the ``result`` of the run a finished parent of the same
    run comes before one that was stopped. ``named``: the plan's ``tracking.uri``. Raises BadInput where a database
    leads files to a place that is not allowed (``tracking_places``).
    """
    from mlflow import MlflowClient

    if (file := file_of(uri)) is not None:
        make_folder(file.parent)
        make_database(file)
    experiment = experiment_in(named, uri, experiment, out)
    client = MlflowClient(tracking_uri=reveal(uri), registry_uri=reveal(uri))
    identity = _experiment(client, uri, experiment, out)
    look_again(named, uri)
    location = str(client.get_experiment(identity).artifact_location)

    def require(runs: Sequence[Any] = ()) -> None:
        kept = Kept(location, tuple((str(run.info.run_id), str(run.info.artifact_uri)) for run in runs))
        require_allowed(named, uri, experiment, out, kept)

    require()
    plan = subject.plan
    tags = {"orch.plan_hash": plan_hash(plan), "orch.kind": subject.kind, "mlflow.source.name": "orch", **tags_of(plan)}

    def opened(parent: str, children: Sequence[Any], *, again: bool = False, logged: Sequence[Any] = ()) -> OpenRun:
        of_settings = {str(child.info.run_name): str(child.info.run_id) for child in children}
        had = {str(run.info.run_id): set(run.data.params) for run in logged}
        ended = {run.info.run_id for run in children if run.info.status not in ("RUNNING", "FINISHED")}
        params, stand_ins = flatten(plan), subject.stand_ins
        return OpenRun(client, identity, parent, tags, params, out, of_settings, again, had, ended, stand_ins)

    stopped, token = unfinished(client, identity, out)
    same = None
    for parent in stopped:
        children = _children(client, identity, parent.info.run_id)
        if same is None and parent.data.tags.get(OF) == subject.identity and subject.has(children):
            same = parent, children
        elif parent.info.status == "RUNNING":
            end_children(client, [child.info.run_id for child in children], "KILLED")
            client.set_terminated(parent.info.run_id, "KILLED")
    running = same is not None and same[0].info.status == "RUNNING"
    if not running and result is not None and (done := finished_before(client, identity, out, result)) is not None:
        children = _children(client, identity, done.info.run_id)
        require([done, *children])
        return opened(str(done.info.run_id), children, again=True)
    if same is not None:
        parent, children = same
        require([parent, *children])
        if not running:
            client.update_run(parent.info.run_id, status="RUNNING")
        return opened(str(parent.info.run_id), children, logged=[parent, *children])
    write_whole(out / OPEN_FILE, token.encode())
    own = {"orch.level": "parent", "orch.run": token, OF: subject.identity}
    return opened(_start(client, identity, subject.name, {**tags, **own}), ())


def _children(client: MlflowClient, experiment: str, parent: str) -> list[Any]:
    """Return the child runs of ``parent``."""
    return list(client.search_runs([experiment], f"tags.{PARENT} = '{parent}'", max_results=50_000))


def is_value(metric: str) -> bool:
    """Return whether a metric is one that trials of a search are compared by (``search_result.news_of``)."""
    return metric.partition(".")[0] == VALUE


def _log_runs(run: OpenRun, kind: Kind, result: Mapping[str, Any], out: Path, tables: Mapping[str, str] | None) -> str:
    """Fill the parent and the child run of each setting; return where MLflow's page shows them."""
    client, parent = run.client, run.parent
    population = {f"population.{name}": float(value) for name, value in result.get("population", {}).items()}
    metrics, main, page = kind.metrics, kind.main_setting(result), kind.open_page()
    first = headline_of(kind, result, main)
    run.log_params()
    gate = GateResult.of(result)
    numbers = {**metrics(result, main), **first.numbers, **population, **gate.metrics()}
    run.log_parent({**run.stale_limits(numbers), **numbers, "seconds": float(result["seconds"])})
    run.tag_worst(parent, first.worst)
    verdict = result.get("verdict")
    said = {"orch.verdict": verdict["level"]} if verdict else {}
    if lines := page.closing_lines(result):
        said[NOTE] = "\n\n".join(map(markdown, lines))
    run.tag_parent({**gate.tags(), **said})
    for name in FILES:
        if (out / name).is_file():
            client.log_artifact(parent, str(out / name))
    for file in sorted((out / "figures").glob("*")):
        if file.is_file() and not file.is_symlink():  # somebody else's folder may hold links to files of the user's
            client.log_artifact(parent, str(file), "figures")
    for name, table in (page.csv(out) if tables is None else tables).items():
        _log_file(client, parent, f"{name}.csv", table.encode(), "tables")
    for trial in told_of(result):
        run.log_trial(trial)
    for entry in result["settings"]:
        name = str(entry["setting"])
        own = headline_of(kind, result, name)
        child = run.log_child(name, dict(entry["overrides"]), {**metrics(result, name), **own.numbers})
        run.tag_worst(child, own.worst)
        if (out / "scores.parquet").is_file():
            _log_scores(client, child, out / "scores.parquet", name)
    views = views_of(result, parent, kind.headline.summary, kind.stand_ins)
    arrange(client, run.experiment, views)
    return f"#/experiments/{run.experiment}/runs{views[-1].link}"


def _experiment(client: MlflowClient, uri: str, name: str, out: Path) -> str:
    """Return the experiment's id, made where it does not exist (with files beside a database without server)."""
    found = client.get_experiment_by_name(name)
    if found is not None:
        if found.lifecycle_stage != "active":
            client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)
    own = own_place(uri, out)
    if own is not None:
        make_folder(own, private=True)
    return client.create_experiment(name, artifact_location=own.as_uri() if own else None)


def _start(client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str]) -> str:
    """Create a run and return its id."""
    return str(client.create_run(experiment, run_name=name, tags=dict(tags)).info.run_id)


def _fill(
    client: MlflowClient, run: str, params: Mapping[str, Any], values: Mapping[str, float], step: int = 0
) -> None:
    """Log parameters and metrics in as few requests as the server's limits allow."""
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    rows = [Metric(allowed_name(name), value, now, step) for name, value in values.items()]
    settings = [Param(allowed_name(name), text_of(value)) for name, value in params.items()]
    for start in range(0, max(len(rows), 1), METRICS_A_REQUEST):
        client.log_batch(run, metrics=rows[start : start + METRICS_A_REQUEST])
    for start in range(0, len(settings), PARAMS_A_REQUEST):
        client.log_batch(run, params=settings[start : start + PARAMS_A_REQUEST])


def _log_scores(client: MlflowClient, run: str, scores: Path, setting: str) -> None:
    """Log the part of the scores table that belongs to one setting."""
    import pyarrow.parquet as pq

    with opened(scores) as source:
        table = pq.read_table(source, filters=[("setting", "=", setting)])
    _log_file(client, run, scores.name, pack_table(table))


def _log_file(client: MlflowClient, run: str, name: str, content: bytes, folder: str | None = None) -> None:
    """Log a file, which a local place gets with the permissions of the run's own files: it may name people."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / name
        write_whole(file, content, private=True)
        client.log_artifact(run, str(file), folder)

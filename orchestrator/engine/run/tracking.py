"""MLflow tracking: a finished run's files become one parent run with a child run for each setting.

Everything is logged by the driver from result files, in batches. Metric names (``gradient_ascent.apollo.auc``) are the
same in every child, so that the UI compares settings column by column.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from audits.credentials import hide, mask, reveal
from audits.errors import BadInput, did_you_mean
from orchestrator.engine.kind import Kind
from orchestrator.engine.run.tracking_names import allowed_name, flatten, plan_hash

if TYPE_CHECKING:
    from mlflow import MlflowClient

SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https")
FILES = ("result.json", "scores.parquet", "plan.yaml", "report.html")
METRICS_A_REQUEST, PARAMS_A_REQUEST = 900, 90  # below the server's limits of 1000 and 100
ANSWER_SECONDS = 10.0
NOISY = ("mlflow", "alembic", "sqlalchemy", "urllib3", "git")


class TrackingFailed(RuntimeError):
    """Tracking could not be completed; the audit's own files are whole. The message is one line."""


def check_uri(uri: str | None) -> None:
    """Raise BadInput for a tracking URI that cannot work (scheme, server address, folder); contacts no server."""
    if uri is None:
        return
    uri = mask(uri)
    parts = urlsplit(reveal(uri))
    scheme = parts.scheme.split("+")[0]
    if scheme not in SCHEMES:
        shown = "a plain path" if not scheme or len(scheme) == 1 else f"scheme {scheme!r}"
        raise BadInput(
            f"tracking.uri {uri!r} has {shown}{did_you_mean(scheme, SCHEMES)}; "
            "allowed: sqlite:////absolute/file.db, http(s)://host:port, postgresql://…, mysql://…, mssql://…"
        )
    if scheme in ("http", "https") and not parts.hostname:
        raise BadInput(f"tracking.uri {uri!r} names no host; write http://host:port")
    if scheme == "sqlite":
        _check_sqlite(uri, Path(parts.path.removeprefix("/")))


def _check_sqlite(uri: str, file: Path) -> None:
    """Refuse a database that does not name a file in a folder that can be written."""
    if not file.name:
        raise BadInput(f"tracking.uri {uri!r} names no file; write sqlite:////absolute/path/mlflow.db")
    folder = file.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BadInput(f"tracking.uri {uri!r}: {file.parent} is not a folder that can be written")


def resolve_uri(uri: str | None, out: Path) -> str:
    """Return the URI in use, masked: the plan's, else MLFLOW_TRACKING_URI, else a SQLite database under ``out``."""
    chosen = mask(uri or os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{out.resolve() / 'mlflow.db'}")
    check_uri(chosen)
    return chosen


def log_result(kind: Kind, result: Mapping[str, Any], out: Path, uri: str | None, experiment: str) -> dict[str, Any]:
    """Log a finished run and return ``{"uri", "experiment", "parent", "children": {setting: run id}}``.

    ``out`` holds result.json, scores.parquet, plan.yaml, report.html and figures/; its tables are logged as CSV.
    Artifacts of a database that has no server go to ``out/mlartifacts``. Logging a run again makes a second parent with
    the same ``orch.plan_hash`` tag.
    Raises BadInput for an unusable URI, TrackingFailed when MLflow cannot be reached or refuses something.
    """
    where = resolve_uri(uri, out)
    with _quiet_mlflow() as errors:
        try:
            _require_answer(where)
            return _log(kind, result, out, where, experiment)
        except errors as error:
            raise TrackingFailed(f"MLflow at {where} failed: {_reason(error)}; {out} is complete") from error


def _require_answer(uri: str) -> None:
    """Raise requests' exception when a server answers nothing at all for some seconds; MLflow would ask for minutes."""
    import requests

    if urlsplit(uri).scheme.startswith("http"):
        requests.get(f"{reveal(uri).rstrip('/')}/health", timeout=ANSWER_SECONDS)  # any answer will do


def _reason(error: Exception) -> str:
    """Return the cause of a failure in one short line."""
    text = hide(" ".join(str(error).split())) or type(error).__name__
    if "Read timed out" in text:
        return "the server accepts connections and does not answer"
    if "Max retries exceeded" in text or "Connection refused" in text:
        return "the server does not answer"
    return text if len(text) <= 200 else f"{text[:199]}…"


@contextmanager
def _quiet_mlflow() -> Iterator[tuple[type[Exception], ...]]:
    """Import MLflow without telemetry, with its log below warnings silenced; yield what it raises when it fails."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    import mlflow  # noqa: F401  # configures its loggers, which are quietened next
    import requests
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    levels = {name: logging.getLogger(name).level for name in NOISY}
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # SQLAlchemy's, about MLflow's own tables
            yield MlflowException, requests.RequestException, sqlalchemy.exc.SQLAlchemyError, OSError
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _log(kind: Kind, result: Mapping[str, Any], out: Path, uri: str, experiment: str) -> dict[str, Any]:
    """Create the parent run, its children and their content."""
    from mlflow import MlflowClient

    if uri.startswith("sqlite:"):
        Path(urlsplit(uri).path.removeprefix("/")).parent.mkdir(parents=True, exist_ok=True)
    client = MlflowClient(tracking_uri=reveal(uri), registry_uri=reveal(uri))
    identity = _experiment(client, uri, experiment, out)
    tags = {"orch.plan_hash": plan_hash(result["plan"]), "orch.kind": str(result["kind"]), "mlflow.source.name": "orch"}
    parent = _start(client, identity, str(result["name"]), {**tags, "orch.level": "parent"})
    try:
        children = _log_runs(client, identity, parent, kind, result, out, tags)
    except BaseException:
        client.set_terminated(parent, "FAILED")
        raise
    client.set_terminated(parent, "FINISHED")
    return {"uri": uri, "experiment": experiment, "parent": parent, "children": children}


def _log_runs(
    client: MlflowClient,
    identity: str,
    parent: str,
    kind: Kind,
    result: Mapping[str, Any],
    out: Path,
    tags: Mapping[str, str],
) -> dict[str, str]:
    """Fill the parent and return the child run of each setting."""
    params = flatten(result["plan"])
    population = {f"population.{name}": float(value) for name, value in result.get("population", {}).items()}
    metrics, main = kind.metrics, kind.main_setting(result)
    _fill(client, parent, params, {**metrics(result, main), **population, "seconds": float(result["seconds"])})
    for name in FILES:
        if (out / name).is_file():
            client.log_artifact(parent, str(out / name))
    if (out / "figures").is_dir():
        client.log_artifacts(parent, str(out / "figures"), "figures")
    for name, table in kind.open_page().csv(out).items():
        client.log_text(parent, table, f"tables/{name}.csv")
    children = {}
    for entry in result["settings"]:
        name, overrides = str(entry["setting"]), dict(entry["overrides"])
        child = _start(client, identity, name, {**tags, "orch.level": "setting", "mlflow.parentRunId": parent})
        children[name] = child
        _fill(client, child, {**params, **flatten(overrides), "setting": name}, metrics(result, name))
        _log_scores(client, child, out / "scores.parquet", name)
        client.set_terminated(child, "FINISHED")
    return children


def _experiment(client: MlflowClient, uri: str, name: str, out: Path) -> str:
    """Return the experiment's id, made where it does not exist (with local artifacts for a database without server)."""
    found = client.get_experiment_by_name(name)
    if found is not None:
        if found.lifecycle_stage != "active":
            client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)
    local = None if urlsplit(uri).scheme.startswith("http") else (out.resolve() / "mlartifacts").as_uri()
    return client.create_experiment(name, artifact_location=local)


def _start(client: MlflowClient, experiment: str, name: str, tags: Mapping[str, str]) -> str:
    """Create a run and return its id."""
    return str(client.create_run(experiment, run_name=name, tags=dict(tags)).info.run_id)


def _fill(client: MlflowClient, run: str, params: Mapping[str, Any], values: Mapping[str, float]) -> None:
    """Log parameters and metrics in as few requests as the server's limits allow."""
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    rows = [Metric(allowed_name(name), value, now, 0) for name, value in values.items()]
    settings = [Param(allowed_name(name), str(value)[:6000]) for name, value in params.items()]
    for start in range(0, max(len(rows), 1), METRICS_A_REQUEST):
        client.log_batch(run, metrics=rows[start : start + METRICS_A_REQUEST])
    for start in range(0, len(settings), PARAMS_A_REQUEST):
        client.log_batch(run, params=settings[start : start + PARAMS_A_REQUEST])


def _log_scores(client: MlflowClient, run: str, scores: Path, setting: str) -> None:
    """Log the part of the scores table that belongs to one setting."""
    import pyarrow.parquet as pq

    table = pq.read_table(scores, filters=[("setting", "=", setting)])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.parquet"
        pq.write_table(table, file)
        client.log_artifact(run, str(file))

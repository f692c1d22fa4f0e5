"""Tracking: what is logged can be read back through MLflow's own client."""

import json
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pyarrow.parquet as pq
import pytest
import urllib3

from audits.errors import BadInput
from orchestrator.cli import diagnosis
from orchestrator.cli.main import main
from orchestrator.engine.run import tracking_server
from orchestrator.engine.run.summary import page_of
from orchestrator.engine.run.tracking import log_result
from orchestrator.engine.run.tracking_database import make_database
from orchestrator.engine.run.tracking_names import flatten
from orchestrator.engine.run.tracking_server import TrackingFailed
from orchestrator.engine.run.tracking_uri import check_uri, resolve_uri
from orchestrator.kinds import kind_named
from tests.cases.apollo_result import settings, write_run
from tests.cases.planted import ROOT
from tests.cases.ports import free_ports

APOLLO = kind_named("apollo")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    few = ("base", "beta=16")
    chosen = [entry for entry in settings(sweep=True) if entry["setting"] in few]
    assert len(chosen) == len(few)
    result = write_run(out, sweep=True, chosen=chosen, targets=2, points=100)
    (out / "report.html").write_text("<html></html>")
    (out / "figures").mkdir()
    (out / "figures" / "auc.svg").write_text("<svg/>")
    (out / "figures" / "link.svg").symlink_to(out / "result.json")  # whose folder it was may have made it
    return out, result


def files(client, run, path=None):
    return {entry.path for entry in client.list_artifacts(run, path)}


def every_run(client, logged):
    """Return all runs of the experiment of a logged one."""
    return client.search_runs([client.get_run(logged["parent"]).info.experiment_id], max_results=1000)


def check_content(client, logged, out, result, folder):
    """State what every tracked sweep must hold, whatever the server."""
    parent = client.get_run(logged["parent"])
    assert parent.info.run_name == "apollo-ablation" and parent.info.status == "FINISHED"
    assert files(client, logged["parent"]) >= {"result.json", "scores.parquet", "plan.yaml", "report.html", "figures"}
    assert files(client, logged["parent"], "figures") == {"figures/auc.svg"}
    found = client.search_runs(
        [parent.info.experiment_id], f"tags.mlflow.parentRunId = '{logged['parent']}'", max_results=100
    )
    assert {child.info.run_name: child.info.run_id for child in found} == logged["children"]
    assert set(logged["children"]) == {entry["setting"] for entry in result["settings"]}
    assert len({frozenset(child.data.metrics) for child in found}) == 1  # comparable: same names in every child
    child = client.get_run(logged["children"]["beta=16"])
    row = next(
        row
        for row in result["table"]
        if (row["setting"], row["unlearner"], row["attack"]) == ("beta=16", "gradient_ascent", "apollo")
    )
    for name in ("auc", "auc_low", "auc_high", "tpr", "found_fpr"):
        assert child.data.metrics[f"gradient_ascent.apollo.{name}"] == pytest.approx(row[name])
    assert child.data.params["audit.search.beta"] == "16" and parent.data.params["audit.search.beta"] == "4.0"
    assert child.data.params["setting"] == "beta=16" and child.data.params["split.train_size"] == "500"
    accuracy = [row["test_accuracy"] for row in result["utility"] if row["unlearner"] == "scrub"]
    assert child.data.metrics["scrub.utility.test_accuracy"] == pytest.approx(sum(accuracy) / len(accuracy))
    tables = {file.path for file in client.list_artifacts(logged["parent"], "tables")}
    assert tables and tables == {f"tables/{name}.csv" for name in APOLLO.open_page().csv(out)}
    local = client.download_artifacts(logged["children"]["beta=16"], "scores.parquet", str(folder))
    whole = pq.read_table(out / "scores.parquet")
    assert pq.read_table(local).num_rows == whole.num_rows // len(result["settings"])
    assert set(pq.read_table(local).column("setting").to_pylist()) == {"beta=16"}


def test_a_sweep_is_read_back(run, tmp_path, monkeypatch, capfd):
    from mlflow import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    out, result = run
    logged = log_result(APOLLO, result, out, None, "orch")
    assert logged["uri"] == f"sqlite:///{out}/mlflow.db" and (out / "mlartifacts").is_dir()
    check_content(MlflowClient(tracking_uri=logged["uri"]), logged, out, result, tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_the_same_run_again_is_no_second_one(run, tmp_path, monkeypatch, capfd):
    """In short: the test above, and ``test_live.py`` of a run that goes on as the same."""
    from mlflow import MlflowClient

    out, result = run[0], {**run[1], "plan_hash": "0123456789abcdef"}
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    logged = log_result(APOLLO, result, out, None, "orch")
    assert logged["uri"] == f"sqlite:///{out}/mlflow.db" and (out / "mlartifacts").is_dir()
    client = MlflowClient(tracking_uri=logged["uri"])
    check_content(client, logged, out, result, tmp_path)
    before = {run.info.run_id: run for run in every_run(client, logged)}
    with_workers = {**result, "seconds": 1.0, "plan": {**result["plan"], "compute": {"workers": 3}}}
    again = log_result(APOLLO, with_workers, out, None, "orch")
    assert again == logged
    check_content(client, logged, out, result, tmp_path)
    after = {run.info.run_id: run for run in every_run(client, logged)}
    assert after.keys() == before.keys() and after[logged["parent"]].data.metrics["seconds"] == 1.0
    for identity, run in before.items():
        assert after[identity].data.params == run.data.params and after[identity].info.end_time == run.info.end_time
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_other_runs_of_a_plan_are_runs_of_their_own_and_what_mlflow_refuses_is_one_line(run, tmp_path, capfd):
    """In short: the test above, and a file that is no database."""
    from mlflow import MlflowClient

    out, result = shutil.copytree(run[0], tmp_path / "out"), {**run[1], "plan_hash": "0123456789abcdef"}
    (out / "mlflow.db").unlink(missing_ok=True)
    logged = log_result(APOLLO, result, out, None, "orch")
    client = MlflowClient(tracking_uri=logged["uri"])
    before = {run.info.run_id: run for run in every_run(client, logged)}
    bare = log_result(APOLLO, {**result, "aggregate_only": True, "pictures": False}, out, None, "orch")
    assert bare["parent"] != logged["parent"]  # the finished one has the scores
    before |= {run.info.run_id: run for run in every_run(client, logged)}
    fewer = {**result, "settings": result["settings"][:1]}
    other = log_result(APOLLO, fewer, out, None, "orch")
    assert other["parent"] != logged["parent"] and len(every_run(client, logged)) == len(before) + 2
    tags = [client.get_run(entry["parent"]).data.tags["orch.plan_hash"] for entry in (logged, other)]
    assert tags[0] == tags[1]
    assert capfd.readouterr() == ("", "")
    with sqlite3.connect(out / "mlflow.db") as database:  # what it refuses is told in one line, and not by MLflow
        database.execute("drop table latest_metrics")
    with pytest.raises(TrackingFailed, match="latest_metrics"):
        log_result(APOLLO, result, out, None, "orch")
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_sweep_is_read_back_from_a_server(run, tmp_path):
    from mlflow import MlflowClient

    out, result = run
    (port,) = free_ports(1)
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *(
            "--backend-store-uri",
            f"sqlite:///{tmp_path}/server.db",
            "--artifacts-destination",
            str(tmp_path / "stored"),
        ),
    ]
    with (tmp_path / "server.log").open("w") as log:
        alone = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # nobody gives it jobs
        server = subprocess.Popen(command, env=alone, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        wait_until_healthy(port, server)
        logged = log_result(APOLLO, result, out, f"http://127.0.0.1:{port}", "orch")
        check_content(MlflowClient(tracking_uri=logged["uri"]), logged, out, result, tmp_path)
    finally:
        stop_group(server)


def wait_until_healthy(port, server):
    """Ask the server's health address, with urllib3's own growing pauses between attempts."""
    retries = urllib3.Retry(total=40, backoff_factor=0.2, backoff_max=5)
    reply = urllib3.PoolManager().request("GET", f"http://127.0.0.1:{port}/health", retries=retries)
    assert reply.status == 200 and server.poll() is None


def stop_group(server):
    """End the server with its workers (they share its process group)."""
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(timeout=600)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def test_a_server_that_is_away_costs_one_line_not_the_audit(run, monkeypatch):
    out, result = run
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        uri = f"http://user:secret@127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(TrackingFailed) as caught:
            log_result(APOLLO, result, out, uri, "orch")
    message = str(caught.value)
    assert "does not answer" in message and "\n" not in message and "secret" not in message
    assert json.loads((out / "result.json").read_text()) == result


def test_a_server_that_hangs_costs_seconds_and_one_line(run, monkeypatch):
    out, result = run
    monkeypatch.setattr(tracking_server, "ANSWER_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TrackingFailed, match="the server does not answer"):
            log_result(APOLLO, result, out, uri, "orch")


class Noting(BaseHTTPRequestHandler):
    """Leads every request on, by another name of its own; ``seen``: paths and logins of all requests."""

    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self):
        self.seen.append((self.path, self.headers["Authorization"]))
        self.send_response(302 if self.path == "/" else 200)
        self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


def test_whether_a_server_answers_is_asked_without_any_login(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(Noting, "seen", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Noting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for login in ("", "me:secret@"):
            tracking_server._knock(f"http://{login}127.0.0.1:{server.server_port}/")
        server.shutdown()
    assert Noting.seen == [("/", None)] * 2


def test_a_kill_while_a_database_is_made_leaves_none_half_made(tmp_path):
    file = tmp_path / "mlflow.db"
    script = """
import os, pathlib, sys
from orchestrator.engine.run import tracking_database
from alembic.operations.batch import ApplyBatchImpl
real = ApplyBatchImpl._create
def killed(*arguments, **named):  # between a table's new form and its old one's end
    real(*arguments, **named)
    os.kill(os.getpid(), 9)
ApplyBatchImpl._create = killed
tracking_database.make_database(pathlib.Path(sys.argv[1]))
"""
    done = subprocess.run([sys.executable, "-c", script, str(file)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL and not file.exists() and len(os.listdir(tmp_path)) >= 1
    make_database(file)
    held = file.stat().st_ino
    make_database(file)
    assert file.stat().st_ino == held
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT name FROM experiments").fetchall() == [("Default",)]


def test_a_file_that_is_no_database_is_a_tracking_failure(run, tmp_path):
    out, result = run
    (tmp_path / "mlflow.db").write_text("this is not a database, whatever its name says. " * 50)
    with pytest.raises(TrackingFailed) as caught:
        log_result(APOLLO, result, out, f"sqlite:///{tmp_path}/mlflow.db", "orch")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("file:///srv/a%20b/mlruns", "file store.*sqlite:////srv/a b/mlflow.db"),
        ("file:mlruns", "file store.*sqlite:////.*/mlflow.db"),
        ("FILE:///srv/mlruns", "file store.*sqlite:////srv/mlflow.db"),
        ("./mlruns", "file store.*sqlite:////.*/mlflow.db"),
        ("/srv/mlruns/", "file store.*sqlite:////srv/mlflow.db"),
        ("mlruns", "file store"),
        ("databricks", "'databricks' is a workspace of Databricks.*allowed: sqlite:"),
        ("databricks://profile", "'databricks://profile' is a workspace of Databricks"),
        ("databricks-uc", "workspace of Databricks"),
        ("databricks-uc://profile", "workspace of Databricks"),
        ("./databricks", "file store"),
        ("tracker:5000", "write http://tracker:5000"),
        ("127.0.0.1:5000/", "write http://127.0.0.1:5000/"),
        ("sqlite:mlflow.db", "three slashes"),
        ("sqlite://mlflow.db", "three slashes"),
        ("htp://host:5000", "did you mean 'http'"),
        ("http://", "names no host"),
        ("sqlite://", "names no file"),
    ],
)
def test_an_unusable_uri_is_refused_before_the_work(uri, message):
    with pytest.raises(BadInput, match=message) as caught:
        check_uri(uri)
    assert "\n" not in str(caught.value)


def test_a_database_below_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadInput, match="not a folder that can be written"):
        check_uri(f"sqlite:///{tmp_path}/taken/mlflow.db")
    check_uri(f"sqlite:///{tmp_path}/new/folder/mlflow.db")
    with pytest.raises(BadInput, match=f"{tmp_path} is a folder; name a file in it"):
        check_uri(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("uri", ["./mlruns", "file:///srv/mlruns", "sqlite:mlflow.db"])
def test_validate_and_doctor_refuse_what_a_run_refuses(uri, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "mia-smoke", "--set", f"tracking.uri={uri}"]) == 2
    assert f"tracking.uri '{uri}'" in capsys.readouterr().err
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert main(["validate", "mia-smoke"]) == 2
    assert f"MLFLOW_TRACKING_URI '{uri}'" in capsys.readouterr().err
    assert main(["validate", "mia-smoke", "--set", "tracking.uri=http://host:5000"]) == 0
    assert main(["audit", "mia", "mia-smoke", "--out", "out"]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not list(tmp_path.iterdir())
    (finding,) = diagnosis.tracking()
    assert finding.status == "FAIL" and "sqlite:///" in finding.fix


def test_uri_comes_from_the_plan_then_the_environment_then_the_output(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracker:5000")
    assert resolve_uri("http://plan:1", tmp_path) == "http://plan:1"
    assert resolve_uri(None, tmp_path) == "http://tracker:5000"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert resolve_uri(None, tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"


@pytest.mark.parametrize("name", ["is it?", "50%41"])
def test_a_folder_that_no_address_can_name_is_refused_unless_another_place_is_said(name, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(BadInput, match="give --out another name"):
        resolve_uri(None, tmp_path / name)
    assert resolve_uri("http://127.0.0.1:5000", tmp_path / name) == "http://127.0.0.1:5000"
    assert resolve_uri(None, tmp_path / "100% #1").endswith("100% #1/mlflow.db")


def test_the_command_that_shows_a_run_can_be_pasted(tmp_path):
    where = page_of({"uri": f"sqlite:///{tmp_path}/a b/mlflow.db", "page": "#/experiments/1"})
    assert shlex.split(where.partition(", then")[0])[-1] == f"sqlite:///{tmp_path}/a b/mlflow.db"


def test_an_unusable_uri_is_refused_without_its_password(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match=r"'htp://\*\*\*@host' has scheme") as caught:
        check_uri("htp://me:sesame@host")
    assert "sesame" not in str(caught.value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:sesame@tracker:5000")
    assert resolve_uri(None, tmp_path) == "http://***@tracker:5000"


def test_plan_is_flattened_by_method_names():
    plan = {"a": {"b": 1, "c": [1, 2]}, "unlearning": [{"method": "scrub", "epochs": 6}, {"method": "retrain"}]}
    assert flatten(plan) == {
        "a.b": 1,
        "a.c": [1, 2],
        "unlearning": "scrub, retrain",
        "unlearning.scrub.epochs": 6,
    }

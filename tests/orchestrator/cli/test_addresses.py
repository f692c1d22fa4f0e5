"""A plan file that names servers, stores and clusters reaches none and sends no secret before the user has said so."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

from audits.errors import BadInput
from orchestrator.cli.diagnosis import server as server_finding
from orchestrator.cli.main import main
from orchestrator.cli.permission import Permission, read_allowance
from orchestrator.cli.session import Session
from orchestrator.cli.submitted_work import read_command
from orchestrator.engine.plan.addresses import addresses_of, reached
from orchestrator.engine.plan.reach import Reach, quoted
from orchestrator.engine.plan.sections import Tracking
from orchestrator.engine.plan.served import Served
from orchestrator.kinds import load_plan
from tests.cases.families import family

TARGET = "audit: {kind: mia, attacks: [loss], judge: loss, fpr: [0.1]}\ndata: {name: digits}\nsplit: {test: 200}\n"
SERVED = (
    TARGET.replace("{", "{{").replace("}", "}}")
    + "target: {{weights: '{url}', members: even, served: {{gives: probabilities, token_env: {token}, record: r}}}}\n"
)
SMALL = (
    "audit: {kind: mia, attacks: [loss], judge: loss, fpr: [0.4]}\ndata: {name: digits}\n"
    "split: {pools: 2, train_size: 60, test: 60, null_models: 2}\n"
)
"""A plan that is soon laid out, as one is that nothing is said against."""
SECRET = "AWS_SECRET_ACCESS_KEY"
TRACKER = "https://tracker.example"
COMMANDS = {
    "validate": ["validate", "plan.yaml"],
    "cost": ["cost", "plan.yaml"],
    "audit": ["audit", "apollo", "plan.yaml"],
    "sweep": ["sweep", "apollo-ablation", "plan.yaml"],
    "tune": ["tune", "apollo", "apollo-ablation", "plan.yaml", "--metric", "gradient_ascent.apollo.auc"],
    "submit": ["submit", "audit", "apollo", "plan.yaml", "--store", "/srv/store"],
}


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, with secrets in the environment and no permission."""
    monkeypatch.chdir(tmp_path)
    for name in ("ORCH_ALLOW_CODE", "ORCH_ALLOW_ADDRESSES", "ORCH_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "AWS_ACCESS_KEY_ID", SECRET):
        monkeypatch.setenv(name, "secret-of-the-user")


class Listener:
    """A port that counts who connects and answers nothing."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.callers = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            try:
                caller, _ = self.socket.accept()
            except OSError:
                return
            self.callers += 1
            caller.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.socket.close()


def write(text: str) -> None:
    Path("plan.yaml").write_text(text)


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which a command refuses."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1, (out, err)
    return err


def shards(place: str) -> str:
    return f"parquet:s3://bucket/x?endpoint_override={place}&scheme=http"


@pytest.mark.parametrize(
    "name",
    ["fsspec+reference::file://{here}/x.json", "fsspec+http://{place}/x", "hf://datasets/x", "file+s3://{place}/x"],
)
def test_no_scheme_hides_another_one(name: str, listener: Listener, capsys: pytest.CaptureFixture[str]) -> None:
    own = name.format(here=Path.cwd(), place=listener.place)
    Path("x.json").write_text(
        json.dumps({"version": 1, "refs": {"a.parquet": [f"http://{listener.place}/x", 0, 1000]}})
    )
    write(f"audit: {{kind: mia}}\ndata: {{name: 'parquet:{own}'}}\n")
    refused(["validate", "plan.yaml"], capsys)
    refused(["validate", "mia-smoke", "--set", f"data.name=parquet:{own}"], capsys)
    write(f"audit: {{kind: mia}}\ncompute: {{store: '{own}'}}\n")
    refused(["audit", "mia", "plan.yaml"], capsys)
    assert listener.callers == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_data_at_an_address_and_contacts_nobody(
    command: str, listener: Listener, capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"data: {{name: '{shards(listener.place)}'}}\n")
    assert f"--allow-addresses aws-keys@{listener.place}" in refused(COMMANDS[command], capsys)
    assert listener.callers == 0


def test_a_cluster_is_not_joined(listener: Listener, capsys: pytest.CaptureFixture[str]) -> None:
    write(f"compute: {{address: '{listener.place}'}}\n")
    said = f"--allow-addresses ray-token@{listener.place}"
    assert said in refused(["audit", "apollo", "plan.yaml"], capsys)
    assert said in refused(["doctor", "--cluster", "plan.yaml"], capsys)
    assert listener.callers == 0


def test_all_addresses_stand_in_one_line_with_what_goes_to_each(capsys: pytest.CaptureFixture[str]) -> None:
    write(
        SERVED.format(url="https://models.example/x", token=SECRET)
        + f"tracking: {{uri: '{TRACKER}'}}\ncompute: {{address: '10.0.0.1:6379', store: 's3://theirs/x'}}\n"
    )
    said = refused(["validate", "plan.yaml"], capsys)
    words = [f"{SECRET}@models.example", "ray-token@10.0.0.1:6379", "s3://theirs", "mlflow-login@tracker.example"]
    assert all(f"--allow-addresses {word}" in said for word in words)
    assert "secret-of-the-user" not in said
    left = [word for word in words if word != "s3://theirs"]
    given = [part for word in left for part in ("--allow-addresses", word)]
    assert "s3://theirs" in (rest := refused(["validate", "plan.yaml", *given], capsys)) and TRACKER[8:] not in rest


def test_permission_is_for_a_place_and_a_credential_together(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["validate", "plan.yaml"]
    write(f"{SMALL}tracking: {{uri: '{TRACKER}'}}\n")
    refused([*words, "--allow-addresses", "tracker.example"], capsys)
    refused([*words, "--allow-addresses", f"{SECRET}@tracker.example"], capsys)
    refused([*words, "--allow-addresses", "mlflow-login@other.example"], capsys)
    assert main([*words, "--allow-addresses", "mlflow-login@tracker.example"]) == 0
    refused(words, capsys) if capsys.readouterr() else None
    monkeypatch.setenv("ORCH_ALLOW_ADDRESSES", "s3://mine mlflow-login@tracker.example")
    assert main(words) == 0


def test_the_command_line_is_the_users_own_word(capsys: pytest.CaptureFixture[str]) -> None:
    write(f"{SMALL}tracking: {{experiment: theirs}}\n")
    assert main(["validate", "plan.yaml", "--set", f"tracking.uri={TRACKER}"]) == 0
    assert main(["validate", "plan.yaml", "--set", f"tracking={{uri: '{TRACKER}'}}"]) == 0
    capsys.readouterr()
    write(SERVED.format(url="https://theirs.example/x", token=SECRET))
    mine = ["--set", "target.weights=https://mine.example/x"]
    assert f"{SECRET}@mine.example" in refused(["validate", "plan.yaml", *mine], capsys), "the plan chose the secret"
    token = ["--set", "target.served.token_env=TOKEN"]
    assert "TOKEN@theirs.example" in refused(["validate", "plan.yaml", *token], capsys), "the plan chose the host"
    assert main(["validate", "plan.yaml", *mine, *token]) == 0


def test_a_file_of_certificates_that_the_plan_chose_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who trusts it takes whoever has its key for the server: the token, and the inputs, go to him."""
    served = SERVED.replace("record: r", "record: r, ca_file: theirs.pem")
    write(served.format(url="https://mine.example/x", token="TOKEN"))
    words = ["validate", "plan.yaml"]
    mine = ["--set", "target.weights=https://mine.example/x", "--set", "target.served.token_env=TOKEN"]
    told = "trusting the certificates in theirs.pem"
    assert told in refused(words, capsys) and told in refused([*words, *mine], capsys)
    asked = []
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text) or False)
    assert main([*words, *mine]) == 2 and told in asked[0]
    assert main([*words, *mine, "--set", "target.served.ca_file=theirs.pem"]) == 0 and len(asked) == 1
    write(served.format(url="https://mine.example/x", token="''"))
    assert main(words) == 2 and told in asked[1], "without a token, too"
    assert main([*words, "--allow-addresses", "mine.example"]) == 2 and told in asked[2], "nor is the place enough"
    assert {"target.weights", "target.served.ca_file"} <= {*addresses_of(type(load_plan("mia-smoke")))}, "in settings"


def test_a_place_and_the_file_of_certificates_by_which_it_is_known_are_allowed_together(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = SERVED.replace("record: r", "record: r, ca_file: {file}")
    words = ["validate", "plan.yaml"]
    file = (Path.cwd() / "our own.pem").resolve()
    allowed = f"TOKEN@mine.example+{file.as_uri()}"
    write(served.format(url="https://mine.example/x", token="TOKEN", file="our own.pem"))
    assert quoted(allowed) in refused([*words, "--allow-addresses", "TOKEN@mine.example"], capsys)
    assert main([*words, "--allow-addresses", allowed]) == 0
    monkeypatch.setenv("ORCH_ALLOW_ADDRESSES", f"TOKEN@mine.example {allowed.replace('mine', 'Mine')}")
    assert main(words) == 0
    write(served.format(url="https://mine.example/x", token="''", file=file))
    assert main(words) == 0, "the same file, without the token"
    capsys.readouterr()
    write(served.format(url="https://mine.example/x", token="TOKEN", file="theirs.pem"))
    assert "theirs.pem" in refused(words, capsys)
    (Path.cwd() / "our own.pem").symlink_to(tmp_path / "theirs.pem")
    write(served.format(url="https://mine.example/x", token="TOKEN", file="our own.pem"))
    assert "theirs.pem" in refused(words, capsys), "a link is the file that it leads to"
    permission = Permission()
    permission.places.add(("TOKEN", "mine.example"))
    reach = Reach("target.weights", "https://mine.example/x", "mine.example", "TOKEN", trusts=("ca_file", str(file)))
    assert not permission.is_allowed(reach)
    permission.allow([reach.permission])
    assert permission.is_allowed(reach) and reach.allowance == read_allowance(reach.permission)


def test_an_address_said_of_another_field_is_not_said_of_this_one(capsys: pytest.CaptureFixture[str]) -> None:
    write(f"tracking: {{uri: '{TRACKER}'}}\n")
    refused(["validate", "plan.yaml", "--set", f"data.root={TRACKER}"], capsys)


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked_once_about_all(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text) or answer)
    write(f"{SMALL}tracking: {{uri: '{TRACKER}'}}\ncompute: {{store: 's3://theirs/x'}}\n")
    assert main(["validate", "plan.yaml"]) == (0 if answer else 2)
    (question,) = asked
    assert "tracker.example" in question and "MLflow" in question and "s3://theirs" in question


def test_answers_are_remembered_for_a_place_and_a_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text, **_: asked.append(text) or True)
    permission = Permission()
    for place, credential, times in (
        ("a", "X", 1), ("a", "X", 1), ("a", "", 1), ("a", "Y", 2), ("b", "X", 3), ("b", "Y", 4), ("b", "X", 4),
    ):  # fmt: skip
        assert not permission.refused([Reach("target.weights", f"https://{place}/", place, credential, "t")])
        assert len(asked) == times


@family("host", ["127.0.0.1", "127.3.4.5", "localhost", "[::1]"], default=(0, 3))
def test_a_server_of_this_machine_is_asked_about_as_others_are(
    host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["validate", "plan.yaml"]
    write(SERVED.format(url=f"http://{host}:9/x", token="''"))
    assert f"--allow-addresses {quoted(f'{host}:9')}" in refused(words, capsys), "the plan chooses path and content"
    assert main([*words, "--allow-addresses", f"{host}:9"]) == 0
    assert main([*words, "--set", f"target.weights=http://{host}:9/x"]) == 0
    capsys.readouterr()
    write(SERVED.format(url=f"http://{host}:9/x", token="TOKEN"))
    assert f"TOKEN@{host}:9" in refused(words, capsys)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name)
    write(f"{SMALL}tracking: {{uri: 'http://{host}:9'}}\n")
    assert f"mlflow-login@{host}:9" in refused(words, capsys), "there may be a login by the time of the run"
    assert main([*words, "--allow-addresses", f"mlflow-login@{host}:9"]) == 0


def test_nothing_is_posted_to_a_service_of_this_machine_unasked(
    redirected: tuple[Redirecting, Redirecting], capsys: pytest.CaptureFixture[str]
) -> None:
    _, service = redirected
    write(SERVED.format(url=f"{service.url}/api/jobs/", token="''"))
    refused(["audit", "mia", "plan.yaml"], capsys)
    write(f"tracking: {{uri: '{service.url}'}}\n")
    refused(["audit", "apollo", "plan.yaml"], capsys)
    assert not service.seen


def test_a_plan_writes_beside_itself_and_where_one_works_and_elsewhere_not_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("plans", "work", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "other")
    monkeypatch.chdir(tmp_path / "work")
    file = str(tmp_path / "plans" / "plan.yaml")
    other = (tmp_path / "other").as_uri()

    def tracked(path: str) -> None:
        Path(file).write_text(f"{SMALL}tracking: {{uri: 'sqlite:///{path}'}}\n")

    for inside in (f"{tmp_path}/work/x/m.db", f"{tmp_path}/plans/m.db", "m.db"):
        tracked(inside)
        assert main(["validate", file]) == 0, inside
    capsys.readouterr()
    for outside in (f"{tmp_path}/other/m.db", "../other/m.db", "link/m.db", f"{tmp_path}/other/%6d.db"):
        tracked(outside)
        said = refused(["validate", file], capsys)
        assert f"tracking.uri writes {other}/m.db" in said and f"--allow-addresses {other}/m.db" in said
        assert main(["validate", file, "--allow-addresses", f"{other}/m.db"]) == 0
        assert main(["validate", file, "--set", f"tracking.uri=sqlite:///{outside}"]) == 0
        capsys.readouterr()
    for meant_for_others in (".ssh/authorized_keys2", ".x/m.db", ".m.db", "lib/startup.pth", "Makefile"):
        tracked(meant_for_others)
        assert meant_for_others in refused(["validate", file], capsys)
    served = f"{{gives: probabilities, record: {tmp_path}/other/r}}"
    Path(file).write_text(f"{TARGET}target: {{weights: 'http://h:1/x', members: even, served: {served}}}\n")
    allowed = ["--set", "target.weights=http://h:1/x", "--set", "target.served.plain=true"]
    assert f"target.served.record writes {other}/r" in refused(["validate", file, *allowed], capsys)
    Path(file).write_text(Path(file).read_text().replace("other/r", "other/answers"))
    assert main(["validate", file, *allowed, "--set", f"compute.store={tmp_path}/other"]) == 0, "as finished runs say"
    monkeypatch.setenv("ORCH_STORE", str(tmp_path / "other"))
    assert main(["validate", file, *allowed]) == 0
    assert not list((tmp_path / "other").iterdir())


@pytest.mark.parametrize("named", [True, False])
def test_beside_a_store_only_answers_are_kept_unasked_and_through_no_link(
    named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("work", "store", "documents"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    store = f"compute: {{store: {tmp_path}/store}}\n" if named else ""
    if not named:
        monkeypatch.setenv("ORCH_STORE", str(tmp_path / "store"))
    write(f"{SMALL}{store}tracking: {{uri: 'sqlite:///{tmp_path}/store/answers/m.db'}}\n")
    assert "tracking.uri writes" in refused(["validate", "plan.yaml"], capsys)
    (tmp_path / "store" / "answers").symlink_to(tmp_path / "documents")
    assert "tracking.uri writes" in refused(["validate", "plan.yaml"], capsys)
    for record in (f"record: {tmp_path}/store/answers", "patience: 60"):
        served = f"{{gives: probabilities, {record}}}"
        write(f"{TARGET}{store}target: {{weights: 'http://h:1/x', members: even, served: {served}}}\n")
        allowed = ["--set", "target.weights=http://h:1/x", "--set", "target.served.plain=true"]
        assert f"{tmp_path}/store/answers is a link" in refused(["validate", "plan.yaml", *allowed], capsys)


def test_a_home_is_where_what_opens_a_file_takes_it_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tracked,) = reached(Tracking, {"uri": "sqlite:///~/x.db"}, "tracking.")
    (kept,) = reached(Served, {"record": "~/answers"}, "target.served.")
    assert tracked.file == tmp_path.resolve() / "~" / "x.db", "SQLite knows no home"
    assert kept.file == tmp_path.resolve() / "home" / "answers"


def test_an_address_behind_a_mask_cannot_be_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = "mssql+pyodbc:///?odbc_connect=Server%3Dtheirs.example"
    write(f"{SMALL}tracking: {{uri: '{hidden}'}}\n")
    words = ["validate", "plan.yaml", "--allow-addresses", "mssql-login@mssql+pyodbc:///?odbc_connect=***"]
    assert "--set tracking.uri=" in refused(words, capsys)
    assert main(["validate", "plan.yaml", "--set", f"tracking.uri={hidden}"]) == 0


def test_settings_of_a_sweep_file_are_asked_about_with_the_plan(
    listener: Listener, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("sweep.yaml").write_text(f"base: apollo-smoke\nspace: {{data.name: ['{shards(listener.place)}', digits]}}\n")
    write(f"audit: {{kind: apollo}}\ntracking: {{uri: '{TRACKER}'}}\n")
    for words in (["sweep", "sweep.yaml", "plan.yaml"], ["cost", "--sweep", "sweep.yaml", "plan.yaml"]):
        said = refused(words, capsys)
        assert f"aws-keys@{listener.place}" in said and "mlflow-login@tracker.example" in said
    assert f"aws-keys@{listener.place}" in refused(["validate", "sweep.yaml"], capsys)
    assert listener.callers == 0


def test_a_job_is_given_the_permissions_of_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    write(f"tracking: {{uri: '{TRACKER}'}}\ncompute: {{address: '10.0.0.1:6379'}}\n")
    words = ["audit", "apollo", "plan.yaml", "--store", "s3://mine/store", "--set", "data.name=parquet:s3://mine/x"]
    sent = read_command(Session(), words).words
    assert sent[-4:-2] == ("--allow-addresses", "mlflow-login@tracker.example")
    assert sent.count("--allow-addresses") == 1, "what stands on the command line needs none, and no cluster is joined"
    monkeypatch.setenv("ORCH_ALLOW_ADDRESSES", "s3://named.in.the.environment")
    sent = read_command(Session(), [*words, "--allow-addresses", "mlflow-login@artifacts.example"]).words
    given = [word for before, word in pairwise(sent) if before == "--allow-addresses"]
    assert given == [
        "s3://named.in.the.environment",
        "mlflow-login@artifacts.example",
        "mlflow-login@tracker.example",
    ], "a database on a node may ask for more than the plan"
    with pytest.raises(BadInput, match="credentials"):
        read_command(Session(), [*words, "--allow-addresses", "s3://KEY:SECRET@bucket"])
    monkeypatch.setenv("ORCH_ALLOW_ADDRESSES", "s3://KEY:SECRET@bucket")
    with pytest.raises(BadInput, match="credentials"):
        read_command(Session(), words)


def test_what_allows_nothing_is_refused() -> None:
    assert read_allowance("TOKEN@Host:1") == ("TOKEN", "host:1")
    assert read_allowance("https://host/predict") == ("", "host")
    assert read_allowance("X@abfs://box@account") == ("X", "abfs://box@account")
    for word in ("", "@host", "TOKEN@", "a b"):
        with pytest.raises(BadInput, match="--allow-addresses"):
            read_allowance(word)


class Redirecting(ThreadingHTTPServer):
    """Answers every request with ``moved_to``, a redirect, or 200; ``seen``: the headers of all requests."""

    def __init__(self, moved_to: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.moved_to, self.seen = moved_to, list[Any]()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    server: Redirecting

    def answer(self) -> None:
        self.server.seen.append(self.headers)
        self.send_response(307 if self.server.moved_to else 200)
        if self.server.moved_to:
            self.send_header("Location", f"{self.server.moved_to}{self.path}")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def redirected() -> Iterator[tuple[Redirecting, Redirecting]]:
    other = Redirecting()
    first = Redirecting(other.url)
    yield first, other
    for one in (first, other):
        one.shutdown()
        one.server_close()


def test_no_login_follows_a_redirect_to_another_server(redirected: tuple[Redirecting, Redirecting]) -> None:
    from mlflow import MlflowClient

    first, other = redirected
    server_finding(first.url.replace("http://", "http://me:word@"))
    MlflowClient(tracking_uri=first.url).search_experiments()
    assert len(first.seen) == 2 and all(headers["Authorization"].startswith("Basic ") for headers in first.seen)
    assert other.seen and not any("Authorization" in headers for headers in other.seen)

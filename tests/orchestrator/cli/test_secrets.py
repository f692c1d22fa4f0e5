"""Credentials of addresses and of the environment are in no file, log, table or message of a run."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from moto.server import ThreadedMotoServer

from audits import credentials
from orchestrator.cli.diagnosis import server, store_place
from orchestrator.cli.main import main
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, load_plan
from tests.cases.secret_search import encodings, files_below, found_in

KEY, SECRET = "AKIAMARKEDKEYID0", "marked/secret+of=S3store"
PASSWORD = "marked@password:of the tracker"
SECRETS = {
    "key id": KEY,
    "store": SECRET,
    "tracker": PASSWORD,
    "AWS_SECRET_ACCESS_KEY": "marked-environment/secret+key",
    "AWS_SESSION_TOKEN": "marked-environment-session-token",
    "MLFLOW_TRACKING_PASSWORD": "marked-environment-password",
    "MLFLOW_TRACKING_TOKEN": "marked-environment-tracking-token",
}
IN_ADDRESS = f"{KEY}:{quote(SECRET, safe='')}"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder, with a cheap kind of audit, marked secrets, and nothing remembered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
    for name, value in SECRETS.items():
        if name.isupper():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.delenv("ORCH_STORE", raising=False)
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process know no credentials, as a new one."""
    monkeypatch.setattr(credentials, "_real", {})
    monkeypatch.setattr(credentials, "_secrets", set())


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server with an empty bucket; it takes any credentials."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    client(f"{host}:{port}").create_bucket(Bucket="bucket")
    yield f"{host}:{port}"
    moto.stop()


def client(address: str) -> Any:
    keys = {"aws_access_key_id": "other", "aws_secret_access_key": "other"}
    return boto3.client("s3", endpoint_url=f"http://{address}", region_name="us-east-1", **keys)


def objects(address: str) -> dict[str, bytes]:
    listed = client(address).list_objects_v2(Bucket="bucket").get("Contents", [])
    bodies = {one["Key"]: client(address).get_object(Bucket="bucket", Key=one["Key"])["Body"].read() for one in listed}
    return {f"s3 {name}": name.encode() + b"\n" + body for name, body in bodies.items()}


def place(address: str, folder: str, who: str = f"{IN_ADDRESS}@") -> str:
    return f"s3://{who}bucket/{folder}?endpoint_override={address}&scheme=http&region=us-east-1"


@pytest.fixture
def tracker() -> Iterator[tuple[str, list[str]]]:
    """The address of a tracking server that refuses every request and repeats what it was sent, and the requests."""
    seen: list[str] = []

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            plain = base64.b64decode(seen[-1].removeprefix("Basic ")).decode()
            body = json.dumps({"error_code": "INVALID_PARAMETER_VALUE", "message": f"http://{plain}@here: {plain}"})
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{http.server_port}", seen
    http.shutdown()


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    for number, form in enumerate(encodings(SECRET)):
        (tmp_path / str(number)).write_bytes(b"before " + form + b" after")
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + SECRET.encode() + b" and more")
        (tmp_path / f"base64 {shift}").write_bytes(text)
    assert len(found_in(files_below(tmp_path), {"store": SECRET})) == len(encodings(SECRET)) + 3


def test_no_file_of_a_run_holds_a_secret(
    tmp_path: Path,
    s3: str,
    tracker: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    here, asked = tracker
    uri = f"http://me:{quote(PASSWORD, safe='')}@{here}"
    assert main(["data", "shard", "digits", place(s3, "points")]) == 0
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "plan.yaml").write_text(
        "audit: {kind: toy}\n"
        f"data: {{name: 'parquet:{place(s3, 'points')}'}}\n"
        "split: {targets: 1, train_size: 40}\n"
        "model: {name: mlp, settings: {hidden: [16]}}\n"
        "recipe: {learning_rate: 0.01, epochs: 1, batch_size: 10}\n"
        f"compute: {{workers: 0, store: '{place(s3, 'store')}'}}\n"
    )
    monkeypatch.setenv("ORCH_ALLOW_ADDRESSES", s3)
    run = ["audit", "toy", "own/plan.yaml", "--out"]
    assert main([*run, "left/refused", "--set", f"tracking.uri={uri}"]) == 0
    assert main([*run, "left/tracked"]) == 0
    assert main(["cache", "ls", "--json", "--store", place(s3, "store")]) == 0
    assert main(["report", "left/tracked"]) == 0

    assert asked.pop(0) == "", "whether the server answers is asked without a login"
    assert set(asked) - {""} == {f"Basic {base64.b64encode(f'me:{PASSWORD}'.encode()).decode()}"}
    plan = (tmp_path / "left" / "refused" / "plan.yaml").read_text()
    assert f"store: s3://***@bucket/store?endpoint_override={s3}" in plan and f"uri: http://***@{here}" in plan
    left = files_below(tmp_path / "left")
    assert any(name.endswith("mlflow.db") for name in left) and len(objects(s3)) > 5
    printed = dict(zip(("stdout", "stderr"), map(str.encode, capfd.readouterr()), strict=True))
    assert b"not tracked: MLflow at http://***@" in printed["stdout"]
    assert found_in({**left, **objects(s3), **printed}, SECRETS) == []

    forget(monkeypatch)
    assert main(["validate", "left/tracked/plan.yaml"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2 and all("kept in no file" in line for line in lines)
    again = ["--set", f"data.name=parquet:{place(s3, 'points')}", "--store", place(s3, "store")]
    assert main(["audit", "toy", "left/tracked/plan.yaml", *again, "--out", "left/tracked"]) == 0
    assert "1 reused" in capfd.readouterr().out


WITH_RAY = """
import sys, types
import actors.cluster
from orchestrator.cli.main import main
from orchestrator.kinds import KINDS

actors.cluster.shutil = types.SimpleNamespace(rmtree=lambda *_, **__: None)  # what Ray wrote is kept, to be searched
KINDS["toy"] = "tests.orchestrator.toy.kind:KIND"
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
@pytest.mark.cluster
def test_no_file_of_ray_holds_a_secret(tmp_path: Path, s3: str) -> None:
    assert main(["data", "shard", "digits", place(s3, "ray-points")]) == 0
    (tmp_path / "with_ray.py").write_text(WITH_RAY)
    set_to = {"data.name": f"parquet:{place(s3, 'ray-points')}", "split.targets": "2", "recipe.epochs": "1"}
    changes = [word for name, value in set_to.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(
        [sys.executable, "with_ray.py", "audit", "toy", "--workers", "1", "--store", place(s3, "ray"), *changes],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    printed = {"stdout": done.stdout, "stderr": done.stderr}
    assert done.returncode == 0, printed
    left = files_below(tmp_path)
    assert any("gcs_server" in name for name in left) and any("runs/toy/result.json" in name for name in left)
    stored = {name: content for name, content in objects(s3).items() if name.startswith("s3 ray/")}
    assert stored
    assert found_in({**left, **stored, **printed}, SECRETS) == []


def test_keys_and_hashes_do_not_depend_on_credentials(s3: str) -> None:
    names = [f"parquet:{place(s3, 'points', who)}" for who in (f"{IN_ADDRESS}@", "other:key@", "")]
    plans = [load_plan(values={"data.name": name}) for name in names]
    assert len({plan.plan_hash for plan in plans}) == 1
    assert plans[0].changed({"seed": 5}).resolved()["data"] == plans[1].resolved()["data"]
    assert len({Store(place(s3, "store", who)).uri for who in ("a:b@", "c:d@")}) == 1


WRONG = {
    "no place": ["--set", "compute.store"],
    "a whole section": ["--set", f"compute=s3://{IN_ADDRESS}@bucket"],
    "a number": ["--set", f"seed=s3://{IN_ADDRESS}@bucket"],
    "an unknown field": ["--set", f"compute.stroe=s3://{IN_ADDRESS}@bucket"],
    "a name as a section": ["--set", f"compute.store=s3://{IN_ADDRESS}@bucket", "--set", "compute.store.deep=1"],
    "slashes in the secret": ["--set", f"data.name=parquet:s3://{KEY}:{SECRET}@bucket/x"],
    "a wrong scheme": ["--set", f"data.name=parquet:s4://{IN_ADDRESS}@bucket/x"],
    "a wrong option": ["--set", f"data.name=parquet:s3://{IN_ADDRESS}@bucket/x?no_such=1"],
    "groups": ["--set", f"data.groups=s3://{IN_ADDRESS}@bucket/x.csv"],
    "garbled YAML": ["--set", f"compute.store={{s3://{IN_ADDRESS}@bucket: [}}"],
    "keys": ["--set", f"compute={{s3://{IN_ADDRESS}@bucket: 1}}"],
    "an assignment forgotten": ["--set", f"s3://{IN_ADDRESS}@bucket"],
    "a plan": [f"s3://{IN_ADDRESS}@bucket/plan.yaml"],
    "a second plan": ["apollo-smoke", f"s3://{IN_ADDRESS}@bucket/plan.yaml"],
    "an unknown option": [f"--stroe=s3://{IN_ADDRESS}@bucket"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_input_is_one_line_without_the_secret(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 1 and not out
    assert found_in({"stderr": err.encode()}, SECRETS) == []


def test_a_log_and_the_doctor_show_no_secret(
    tmp_path: Path, tracker: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError(f"lost s3://{IN_ADDRESS}@bucket and {SECRETS['AWS_SESSION_TOKEN']}")

    monkeypatch.setattr("orchestrator.cli.main.invoke", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["ls", "plans"]) == 3
    found = [*store_place(f"s4://{IN_ADDRESS}@bucket"), server(f"http://me:{quote(PASSWORD, safe='')}@{tracker[0]}")]
    assert [one.status for one in found] == ["FAIL", "FAIL"]
    shown = {"doctor": repr(found).encode(), **files_below(tmp_path), "stderr": capsys.readouterr().err.encode()}
    assert found_in(shown, SECRETS) == []

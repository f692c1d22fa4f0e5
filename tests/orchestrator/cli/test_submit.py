"""``orch submit`` without a cluster: what is sent, what is refused, how a job's log becomes a folder and an exit code.

With a cluster: ``tests/long/test_submit.py``.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import tracemalloc
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
import torch

import actors.submit
import orchestrator.cli.submit
from actors import own_cluster
from actors.submit import Ended, JobServer, JobServerLost
from audits.errors import BadInput
from audits.own.permission import asking
from orchestrator.cli import handover
from orchestrator.cli.handover import DamagedHandover, chosen, packed, unpack
from orchestrator.cli.main import main
from orchestrator.cli.session import Session
from orchestrator.cli.submit import Screen, exit_code, follow, start
from orchestrator.cli.submitted_work import read_command
from tests.cases.families import family
from tests.cases.tar_files import with_size

STORE = ("--store", "/srv/store")
BETA = "audit.search.beta"


def test_what_is_sent_is_what_was_said_but_for_what_concerns_this_machine(tmp_path: Path) -> None:
    plan = tmp_path / "mine.yaml"
    plan.write_text("data: {name: digits}\n")
    said = f"audit apollo {plan} --set split.targets=9 --workers 3 --rebuild --json --out here --fail-above auc=0.9"
    work = read_command(Session(), [*said.split(), *STORE])
    sent = "audit apollo plan.yaml --set split.targets=9 --workers 3 --store /srv/store --rebuild --fail-above auc=0.9"
    assert sorted(work.words) == sorted([*sent.split(), "--set", "compute.address=auto"])
    assert work.words[:3] == ("audit", "apollo", "plan.yaml")
    assert (work.source, work.out, work.as_json) == (str(plan), Path("here"), True)
    assert (work.plan.compute.workers, work.plan.compute.store) == (3, "/srv/store")
    assert "--allow-code" not in work.words
    assert "--allow-code" in read_command(Session(), [*said.split(), *STORE, "--allow-code"]).words
    assert read_command(Session(), ["sweep", "apollo-ablation", *STORE]).out == Path("runs/apollo-ablation")
    assert read_command(Session(), ["audit", "tmia", "tmia-smoke", *STORE]).words[1:3] == ("tmia", "tmia-smoke")


@family("swept", [["mine.yaml"], ["apollo-ablation", "apollo-smoke"], ["--vary", f"{BETA}=1,4"]], default=(0, 2))
def test_a_choice_is_sent_with_its_sweep_and_its_metric(
    swept: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(f"base: apollo-smoke\nspace: {{{BETA}: [1, 4]}}\n")
    metric = ["--metric", "gradient_ascent.apollo.auc", "--mode", "max"]
    plan = ["apollo-smoke"] if swept[0] == "--vary" else []
    work = read_command(Session(), ["tune", "apollo", *plan, *swept, *metric, *STORE])
    assert work.words[:2] == ("tune", "apollo") and work.sweep == (
        Path("mine.yaml") if plan == [] and len(swept) == 1 else None
    )
    text = " ".join(work.words)
    assert " ".join(metric[:2]) in text and "--mode max" in text
    assert all(word in [part.removeprefix("./") for part in work.words] for word in swept)
    name = {"mine.yaml": "mine", "--vary": "vary-beta"}.get(swept[0], swept[0])
    assert work.out == Path(f"runs/tune-{name}")
    again = read_command(Session(), work.words)  # the cluster reads it alike
    assert (again.out, again.plan) == (work.out, work.plan)


@pytest.mark.parametrize(
    ("kind", "metric", "vary"),
    [
        ("tmia", "selected.tmia_distance.advantage", "audit.selectors=[none],[kmeans]"),
        ("mia", "lira.auc", "split.shadows=8,16"),
        ("gnq", "none.lira.naive.auc", "split.shadows=8,16"),
    ],
)
def test_choices_of_all_kinds_are_checked_before_they_are_sent(kind: str, metric: str, vary: str) -> None:
    words = ["tune", kind, f"{kind}-smoke", "--vary", vary, *STORE]
    assert read_command(Session(), [*words, "--metric", metric]).words[:2] == ("tune", kind)
    with pytest.raises(BadInput, match=f"did you mean '{metric}'"):
        read_command(Session(), [*words, "--metric", f"{metric}s"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "submit runs audit, sweep, tune"),
        ("doctor", "not 'doctor'"),
        ("audit apollo", "the default store, a folder of this machine, cannot be reached by all nodes"),
        ("audit apollo --store here", "store 'here'"),
        ("audit apollo --set compute.store=s3://KEY:WORD@bucket/x", "holds credentials"),
        ("audit apollo --store /s --set tracking.uri=http://KEY:WORD@host:5000", "holds credentials"),
        ("audit apollo --store /s --set data.root=s3://KEY:WORD@bucket/x", "holds credentials"),
        (
            "audit apollo secret.yaml --store /s --allow-addresses mlflow-login@host:5000",
            "tracking.uri is 'http://***@host:5000' holds credentials",
        ),
        ("audit apollo --store /s --set split.shadosw=3", "split.shadosw"),
        ("sweep apollo-ablation --store /s --resume", "--resume"),
        ("tune apollo apollo-ablation --store /s --metric a.b.auc", "--metric is 'a.b.auc'"),
        ("tune mia apollo-ablation --store /s", "audit.kind is 'apollo' in the plan"),
        ("audit apollo --store /s --address ray://x:10001", "No such option"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line_before_anything_is_sent(
    words: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)
    (tmp_path / "secret.yaml").write_text("tracking: {uri: 'http://KEY:WORD@host:5000'}\n")
    assert main(["submit", "--address", "http://127.0.0.1:1", *words.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line and "WORD" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["secret.yaml"]


def test_credentials_of_the_environment_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ORCH_STORE", "s3://KEY:WORD@bucket/x"), ("MLFLOW_TRACKING_URI", "http://KEY:WORD@host")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(BadInput, match=rf"^{name} is '[^']*\*\*\*@[^']*' holds credentials"):
                read_command(Session(), ["audit", "tmia", "tmia-smoke", *STORE])


def test_what_the_user_has_said_of_stores_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, str]] = []
    server = SimpleNamespace(submit=lambda *words: sent.append(words[3]))
    said = {"ORCH_ALLOW_STORES": "*", "ORCH_STORE_KEY_FILE": "~/.orch-key"}
    work = read_command(Session(), ["audit", "tmia", "tmia-smoke", *STORE])
    for name in said:
        monkeypatch.delenv(name, raising=False)
    start(server, work)  # type: ignore[arg-type]
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    start(server, work)  # type: ignore[arg-type]
    assert not said.keys() & sent[0].keys()
    assert said.items() <= sent[1].items()


@pytest.mark.parametrize(("address", "says"), [("http://127.0.0.1:1", "ray dashboard"), ("auto", "give that of the")])
def test_no_job_server_is_one_line_and_leaves_no_folder(
    address: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", "tmia", "tmia-smoke", *STORE, "--out", str(tmp_path / "out")]
    assert main(["submit", "--address", address, *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not (tmp_path / "out").exists()


@family(
    "refusal, code",
    [(JobServerLost("the server does not answer"), 3), (RuntimeError("500: no room"), 3), (BadInput("no job"), 2)],
    default=(0,),
)
def test_a_job_that_the_server_does_not_take_leaves_the_folder_as_it_was(
    refusal: Exception, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise refusal

    monkeypatch.setattr(orchestrator.cli.submit, "JobServer", lambda address: SimpleNamespace(submit=refuse))
    words = ["submit", "audit", "tmia", "tmia-smoke", *STORE, "--force", "--out"]
    assert main([*words, str(tmp_path / "runs" / "out")]) == code
    assert not (tmp_path / "runs").exists()
    former = tmp_path / "former"
    former.mkdir()
    for name in ("plan.yaml", "result.json"):
        (former / name).write_text("{}")
    assert main([*words, str(former)]) == code
    assert {file.name: file.read_text() for file in former.iterdir()} == {"plan.yaml": "{}", "result.json": "{}"}


def test_an_address_of_another_form_is_refused_before_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--address", "ray://x:10001", "audit", "tmia", "tmia-smoke", "--store", "here"]) == 2
    assert "give that of the head's dashboard" in capsys.readouterr().err


def test_ctrl_c_while_a_job_is_sent_leaves_none_behind() -> None:
    told: list[str] = []

    def sent(name: str, *_: object) -> None:
        told.append(name)
        raise KeyboardInterrupt

    def gone(name: str) -> None:
        told.append(name)
        raise BadInput(f"no job {name!r}")

    server = SimpleNamespace(submit=sent, cancel=gone)
    with pytest.raises(KeyboardInterrupt):
        start(server, read_command(Session(), ["audit", "tmia", "tmia-smoke", *STORE]))  # type: ignore[arg-type]
    assert len(told) == 2 and told[0] == told[1]


class Guarded(BaseHTTPRequestHandler):
    """A job server that says its version to who has the token."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Bearer ours"
        self.send_response(200 if known else 401)
        self.end_headers()
        said = {"version": "4", "ray_version": "2.60.0"} if known else "Unauthorized: Missing authentication token"
        self.wfile.write(json.dumps(said).encode())

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def test_the_users_token_is_sent_whatever_mode_ray_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(("127.0.0.1", 0), Guarded) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(BadInput, match="refuses the token"):
            JobServer(address)
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("ours\n")
        JobServer(address)
        monkeypatch.setenv("RAY_AUTH_TOKEN", "another")
        with pytest.raises(BadInput, match="refuses the token"):
            JobServer(address)
        server.shutdown()


@family("words", [["--attach", "orch-1"], ["audit", "tmia", "tmia-smoke", *STORE]], default=(0,))
def test_no_token_goes_to_another_user_who_was_first_at_the_usual_port(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "ours")
    monkeypatch.delenv("RAY_API_SERVER_ADDRESS", raising=False)
    monkeypatch.setattr(Guarded, "log_message", lambda *_: asked.append("asked"))
    (usual,) = (each for each in orchestrator.cli.submit.command.params if each.name == "address")
    with HTTPServer(("127.0.0.1", 0), Guarded) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(usual, "default", address)
        assert set(own_cluster.listeners("127.0.0.1", server.server_port)) == {os.geteuid()}
        monkeypatch.setattr(own_cluster, "listeners", lambda _, port: [54321] * (port == server.server_port))
        assert main(["submit", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "another user (user 54321) listens at" in line and f"--address {address}" in line and not asked
        assert main(["submit", "--address", address, *words]) != 0  # it is no job server
        assert asked, "who names it is believed"
        server.shutdown()


def test_results_come_whole_out_of_a_log_that_others_write_into(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "figures").mkdir(parents=True)
    (run / "mlartifacts").mkdir()
    contents = {"result.json": b"{}", "scores.parquet": bytes(range(256)) * 99, "figures/a.svg": b"<svg/>"}
    for name, data in {**contents, "mlflow.db": b"x", "mlartifacts/y": b"x"}.items():
        (run / name).write_bytes(data)
    files, left = chosen(run)
    assert not left
    lines = list(packed(run, files))
    log = "\n".join(["Running", *(f"{line}\n(raylet) orch-result is a word" for line in lines), ""])
    assert sorted(unpack(log, tmp_path / "out") or []) == sorted(contents)
    assert {name: (tmp_path / "out" / name).read_bytes() for name in contents} == contents
    assert unpack("Running\n", tmp_path / "none") is None
    with pytest.raises(DamagedHandover, match="lacks 1 of"):
        unpack("\n".join(lines[1:]), tmp_path / "none")
    with pytest.raises(DamagedHandover, match="not what was written"):
        unpack("\n".join([lines[0][:40] + "AAAA" + lines[0][44:], *lines[1:]]), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def bomb(kind: str, size: int) -> bytes:
    """Return a tar file, compressed, of a few kilobytes that would take ``size`` bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for number in range(4 if kind == "several files" else 1):
            member = tarfile.TarInfo(f"file-{number}")
            member.size = size // 4 if kind == "several files" else size
            if kind == "a sparse file":
                member.size, member.pax_headers = 0, {"GNU.sparse.map": "0,0", "GNU.sparse.realsize": str(size)}
                member.pax_headers |= {"GNU.sparse.size": str(size), "GNU.sparse.numblocks": "1"}
            if kind == "a long header":
                member.size, member.pax_headers = 0, {"comment": "x" * size}
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    assert len(buffer.getvalue()) < size // 100
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["one file", "several files", "a sparse file", "a long header"])
def test_results_that_would_unpack_to_more_than_are_sent_are_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 2**18
    monkeypatch.setattr(handover, "MOST_BYTES", most)
    data = bomb(kind, 64 * most)
    lines = [f"{handover.MARK} 0 {base64.b64encode(data).decode()}"]
    log = "\n".join([*lines, f"{handover.MARK} end 1 {hashlib.sha256(data).hexdigest()}"])
    tracemalloc.start()
    try:
        with pytest.raises(DamagedHandover, match="more than"):
            unpack(log, tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 16 * most
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "out").exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["text", "negative size", "endless headers", "map"])
def test_results_that_are_no_archive_are_damage(kind: str, tmp_path: Path) -> None:
    data = gzip.compress(headers(kind)) if kind != "text" else b"no archive"
    text = base64.b64encode(data).decode()
    log = f"{handover.MARK} 0 {text}\n{handover.MARK} end 1 {hashlib.sha256(data).hexdigest()}"
    with pytest.raises(DamagedHandover, match="no archive"):
        unpack(log, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../beside", "figures/../../beside", "/beside", "a link"])
def test_results_are_files_below_their_folder_alone(name: str, tmp_path: Path) -> None:
    buffer, member = io.BytesIO(), tarfile.TarInfo(name)
    if name == "a link":
        member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path / "beside")
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(member)
    data = buffer.getvalue()
    log = (
        f"{handover.MARK} 0 {base64.b64encode(data).decode()}\n{handover.MARK} end 1 {hashlib.sha256(data).hexdigest()}"
    )
    with pytest.raises(DamagedHandover, match="which is no file of a run"):
        unpack(log, tmp_path / "out")
    assert [*tmp_path.iterdir()] == [tmp_path / "out"] and not [*(tmp_path / "out").iterdir()]


def headers(kind: str) -> bytes:
    """Return an archive that tarfile reads without an end, or ends by an error of another kind than its own."""
    member = tarfile.TarInfo("b")
    if kind == "negative size":
        return with_size(member, -tarfile.BLOCKSIZE)
    if kind == "map":
        member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "a,b"}
        return member.tobuf(tarfile.PAX_FORMAT) + bytes(2 * tarfile.BLOCKSIZE)
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1
    return (member.tobuf() + bytes(tarfile.BLOCKSIZE)) * 5000


def test_the_largest_files_are_left_behind_first(tmp_path: Path) -> None:
    for name, size in (("scores.parquet", 500), ("result.json", 300), ("report.html", 300)):
        (tmp_path / name).write_bytes(bytes(size))
    taken, left = chosen(tmp_path, most=700)
    assert [path.name for path in taken] == ["result.json", "report.html"]
    assert [path.name for path in left] == ["scores.parquet"]


def test_lines_are_shown_once_they_are_whole_and_results_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(err=False)
    for text in ("trai", "ning\norch-res", "ult 0 QUJD\nth", "e end"):
        screen.write(text)
    screen.end()
    assert capsys.readouterr().out == "training\nthe end\n"


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (Ended("SUCCEEDED", 0, ""), 0),
        (Ended("FAILED", 1, ""), 1),
        (Ended("FAILED", 2, ""), 2),
        (Ended("FAILED", 3, ""), 3),
        (Ended("STOPPED", -15, ""), 130),
        (Ended("FAILED", -9, "killed"), 3),
        (Ended("FAILED", None, "the node died"), 3),
    ],
)
def test_the_exit_code_is_the_commands(ended: Ended, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(ended) == code
    assert (ended.message in capsys.readouterr().err) or not ended.message


@pytest.mark.parametrize(("code", "told"), [(2, 2), (0, 3), (1, 3), (3, 3)])
def test_a_job_that_left_no_results_did_not_finish(
    code: int, told: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("run", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "result.json").write_text('{"verdict": "of an earlier run"}')
    log = "\n".join(packed(tmp_path / "run", []))
    ended = Ended("SUCCEEDED" if code == 0 else "FAILED", code, "")
    server = SimpleNamespace(follow=lambda name, write: ended, log=lambda name: log)
    assert follow(server, "audit-1", tmp_path / "out", as_json=True) == told  # type: ignore[arg-type]
    said = capsys.readouterr()
    assert "job audit-1 left no results\n" in said.err and not said.out


class Client:
    """A job whose log comes over connections that break after each of ``pieces``."""

    def __init__(self, pieces: tuple[str, ...]) -> None:
        self.pieces = pieces
        self.connections = 0

    async def tail_job_logs(self, name: str) -> AsyncIterator[str]:
        self.connections += 1
        for piece in self.pieces[: self.connections]:
            yield piece
        if self.connections < len(self.pieces):
            raise RuntimeError("WebSocket connection closed unexpectedly")

    def get_job_info(self, name: str) -> SimpleNamespace:
        over = self.connections >= len(self.pieces)
        status = SimpleNamespace(is_terminal=lambda: over, value="SUCCEEDED")
        return SimpleNamespace(status=status, driver_exit_code=0, message="")


def test_a_log_goes_on_where_its_connection_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors.submit, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(actors.submit, "_connect", lambda address: Client(("one\n", "two\n", "three\n")))
    shown: list[str] = []
    assert JobServer("http://there").follow("job", shown.append).status == "SUCCEEDED"
    assert "".join(shown) == "one\ntwo\nthree\n"
    monkeypatch.setattr(actors.submit, "_connect", lambda address: Client(("",) * 20))
    with pytest.raises(JobServerLost, match="job"):
        JobServer("http://there").follow("job", shown.append)


def test_permission_for_own_code_is_none_for_a_program_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def late(*_): ...\n")
    target = "{kind: mia}\ntarget: {weights: %s, members: even}\nmodel: {name: mlp}\ndata: {name: digits}\n"
    own = [*STORE, "--set", "recipe.fit=python:mine:late"]
    torch.jit.script(torch.nn.Linear(2, 2)).save("here.ts")
    session = Session()
    with asking(session.permission.may_run):
        for weights, said in (("here.ts", "is a program"), ("away.pt", "is not here"), ("away.ts", "is not here")):
            Path("plan.yaml").write_text(f"audit: {target % weights}")
            with pytest.raises(BadInput, match=f"{weights} {said}"):
                read_command(session, ["audit", "mia", "plan.yaml", *own])
        Path("plan.yaml").write_text(f"audit: {target % 'away.safetensors'}")
        assert "--allow-code" in read_command(session, ["audit", "mia", "plan.yaml", *own]).words
        Path("plan.yaml").write_text("audit: {kind: gnq}\ntarget: {weights: away.pt, members: even}\n")
        code = ["--set", "data.name=python:mine:late"]  # checkpoints are weights alone
        assert "--allow-code" in read_command(session, ["audit", "gnq", "plan.yaml", *STORE, *code]).words

"""A tracking database that somebody else prepared leads no file of a run to a place of their choice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from audits.errors import BadInput
from audits.writing import CannotWrite
from orchestrator.cli.main import main
from orchestrator.engine.run import tracking_database
from orchestrator.engine.run.tracking_again import FINISHED_FILE
from orchestrator.engine.run.tracking_database import JOURNAL_MAGIC
from orchestrator.engine.run.tracking_places import (
    Kept,
    file_of,
    foreign,
    kept_in,
    leads_to,
    require_allowed,
    require_ours,
    require_places,
)
from orchestrator.engine.run.tracking_stopped import OPEN_FILE, tokens_in
from orchestrator.engine.run.tracking_uri import check_uri
from tests.cases.kept import finished
from tests.cases.runs import draw_only

QUICK = ["--set", "compute.workers=0", "--quiet"]


class Takes(ThreadingHTTPServer):
    """A server that takes whatever it is sent; ``seen``: the path and login of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.seen = list[tuple[str, str | None]]()
        self.place = f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    server: Takes

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_PUT = do_POST = answer

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def loot() -> Iterator[Takes]:
    server = Takes()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ORCH_ALLOW_ADDRESSES", "ORCH_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret-of-the-user")


def prepared(file: Path, location: str) -> str:
    """Make a database whose experiment keeps its files at ``location``; return its address."""
    from mlflow import MlflowClient

    file.parent.mkdir(exist_ok=True)
    uri = f"sqlite:///{file.absolute()}"
    MlflowClient(tracking_uri=uri).create_experiment("orch", artifact_location=location)
    return uri


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which a command refuses before it has done anything."""
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert not Path("out", "result.json").exists() and not Path("elsewhere").exists()
    return said


def audit(plan: str = "plan.yaml", *more: str, out: str = "out") -> list[str]:
    return ["audit", "mia", plan, "--out", out, *QUICK, *more]


def small_plan(folder: Path, store: Path, **tracking: str) -> str:
    """Write ``plan.yaml`` in ``folder``, the smallest audit of a kind, and return its name."""
    fields = yaml.safe_load((finished("mia") / "plan.yaml").read_text())
    assert not fields.get("tracking", {}).get("uri")
    (folder / "plan.yaml").write_text(
        yaml.safe_dump({**fields, "compute": {"workers": 0, "store": str(store)}, "tracking": tracking})
    )
    return "plan.yaml"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has all artefacts of the plan."""
    place = tmp_path_factory.mktemp("made") / "store"
    return Path(shutil.copytree(finished("mia").with_name("store"), place))


@pytest.fixture
def plan(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a plan file whose audit computes and draws nothing, but is tracked."""
    draw_only(monkeypatch, "nothing")
    return small_plan(tmp_path, store)


def tracked_at(store: Path, uri: str) -> None:
    """Let the plan file itself name a tracking database."""
    small_plan(Path(), store, uri=uri)


@pytest.fixture(scope="module")
def first_run(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plan, and its tracked run in ``out``."""
    folder = tmp_path_factory.mktemp("first") / "here"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "nothing")
        patch.chdir(folder)
        assert main(audit(small_plan(folder, store))) == 0
    shutil.copytree(folder, folder.with_name("as it was"))
    return folder


@pytest.fixture
def tracked(first_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where a run of ``plan.yaml`` was tracked: nothing has been moved or changed since."""
    shutil.rmtree(first_run)
    shutil.copytree(first_run.with_name("as it was"), first_run)
    monkeypatch.chdir(first_run)


def test_a_database_that_a_plan_names_sends_nothing_to_a_server_unasked(
    plan: str, store: Path, loot: Takes, capsys: pytest.CaptureFixture[str]
) -> None:
    tracked_at(store, prepared(Path("theirs.db"), f"http://{loot.place}/loot"))
    assert f"--allow-addresses mlflow-login@{loot.place}" in refused(audit(), capsys)
    assert not loot.seen


@pytest.mark.long
def test_another_experiment_is_a_way_out(plan: str, store: Path, loot: Takes) -> None:
    tracked_at(store, prepared(Path("theirs.db"), f"http://{loot.place}/loot"))
    assert main(audit(plan, "--set", "tracking.experiment=mine")) == 0
    assert not loot.seen


def test_the_users_own_word_lets_a_database_lead_where_it_does(loot: Takes, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = prepared(Path("own.db"), f"http://{loot.place}/mine")
    require_places(None, "orch", Path("out"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    require_places(None, "orch", Path("out"))


@pytest.mark.long
def test_an_audit_sends_its_files_to_where_the_users_own_database_leads(plan: str, loot: Takes) -> None:
    """In short: the test above."""
    uri = prepared(Path("own.db"), f"http://{loot.place}/mine")
    assert main(audit(plan, "--set", f"tracking.uri={uri}")) == 0
    assert loot.seen and all(path.startswith("/mine/") for path, _ in loot.seen)


@pytest.mark.parametrize(
    "location",
    [
        *(pytest.param(f"{before}{{here}}/elsewhere", marks=pytest.mark.long) for before in ("", "file://")),
        "s3://theirs/x",
    ],
)
def test_the_database_of_a_run_folder_leads_nowhere_else(
    plan: str, location: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(Path("out/mlflow.db"), location.format(here=tmp_path))
    place = "s3://theirs" if location.startswith("s3") else f"{tmp_path.as_uri()}/elsewhere"
    assert f"--allow-addresses {place}" in refused(audit(), capsys)
    with pytest.raises(BadInput, match=r"tracking\.experiment"):
        require_places(None, "orch", Path("out"))  # from Python nobody is asked, and no word of the user's names it
    if not location.startswith("s3"):
        assert main(audit(plan, "--allow-addresses", place)) == 0
        assert list(Path("elsewhere").rglob("result.json"))


def test_a_stopped_run_does_not_go_on_in_a_place_of_its_own(tracked: None, capsys: pytest.CaptureFixture[str]) -> None:
    where = Path("elsewhere").absolute().as_uri()
    with closing(sqlite3.connect("out/mlflow.db")) as database, database:
        database.execute(f"UPDATE runs SET artifact_uri = '{where}/' || run_uuid")
    for file in Path("out").glob("result*"):
        file.unlink()
    assert "elsewhere" in refused(audit(), capsys)


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_folder_that_was_moved_is_tracked_where_it_is_now(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In short: ``test_places_of_runs_are_those_below_the_experiments``."""
    prepared(Path("out/mlflow.db"), Path("former/mlartifacts").absolute().as_uri())
    capsys.readouterr()
    assert main([word for word in audit() if word != "--quiet"]) == 0
    assert "'orch-2'" in capsys.readouterr().out and not Path("former").exists()
    assert "'orch-2'" in require_places(None, "orch", Path("out")), "and no third one"
    with closing(sqlite3.connect("out/mlflow.db")) as database:
        ((location, runs),) = database.execute(
            "SELECT artifact_location, COUNT(run_uuid) FROM experiments JOIN runs USING (experiment_id) "
            "WHERE experiments.name = 'orch-2' GROUP BY experiment_id"
        )
    assert location == Path("out/mlartifacts").absolute().as_uri() and runs > 1


def test_a_database_that_acts_by_itself_is_refused(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    prepared(Path("out/mlflow.db"), Path("out/mlartifacts").absolute().as_uri())
    with closing(sqlite3.connect("out/mlflow.db")) as database, database:
        database.execute(
            "CREATE TRIGGER lead AFTER INSERT ON metrics BEGIN UPDATE runs SET artifact_uri = 'file:///x'; END"
        )
    assert "trigger" in refused(audit(), capsys)


ACTS = "CREATE TRIGGER lead AFTER INSERT ON metrics BEGIN UPDATE runs SET artifact_uri = 'http://x'; END"
UNKNOWN = "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE VIRTUAL TABLE x USING unknown()')"
LOUD = "UPDATE sqlite_master SET type = 'TRIGGER' WHERE type = 'trigger'"
NO_TEXT = "UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT) WHERE name = 'lead'"


@pytest.mark.parametrize("hidden", [UNKNOWN, LOUD, NO_TEXT, "journal", "wal"])
def test_no_database_hides_what_it_does_by_itself(hidden: str) -> None:
    file = Path("out/mlflow.db")
    prepared(file, Path("out/mlartifacts").absolute().as_uri())
    if hidden == "journal":
        with_journal(file, ACTS)
    else:
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            if hidden == "wal":
                database.execute("PRAGMA journal_mode = WAL")
            database.execute(ACTS)
            if hidden == "wal":
                shutil.copytree("out", "copy")
            else:
                database.execute("PRAGMA writable_schema = ON")
                database.execute(hidden)
        if hidden == "wal":
            shutil.rmtree("out")
            Path("copy").rename("out")
            assert Path("out/mlflow.db-wal").stat().st_size
    with pytest.raises(BadInput, match="another database"):
        require_places(None, "orch", Path("out"))


def with_journal(file: Path, more: str, named: str = "") -> None:
    """Let a database have what ``more`` makes in a journal alone: of a transaction without it that was cut.

    ``named``: the other journal that this one names, as those of several databases do.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        if more:
            database.execute(more)
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN EXCLUSIVE")
        if more:
            database.execute("DROP TRIGGER lead")
        database.execute("CREATE TABLE filler (x)")
        database.executemany("INSERT INTO filler VALUES (?)", [("x" * 3000,)] * 300)
        copies = {name: Path(f"{file}{name}").read_bytes() for name in ("", "-journal")}
        ((size,),) = database.execute("PRAGMA page_size")
        database.execute("ROLLBACK")
    for name, content in copies.items():
        Path(f"{file}{name}").write_bytes(content)
    if named:
        text, total = named.encode(), sum(mark - 256 * (mark > 127) for mark in named.encode())
        tail = struct.pack(">I", 2**30 // size + 1) + text + struct.pack(">II", len(text), total % 2**32)
        with Path(f"{file}-journal").open("ab") as journal:
            journal.write(tail + JOURNAL_MAGIC)


def test_a_journal_of_somebody_else_removes_no_file() -> None:
    file, mine = Path("out/mlflow.db"), Path("mine.txt").absolute()
    prepared(file, Path("out/mlartifacts").absolute().as_uri())
    shutil.copy(file, "control.db")
    for place in (file, Path("control.db")):
        with_journal(place, "", str(mine))
    mine.write_text("of the user")
    with closing(sqlite3.connect("control.db")) as database:
        assert not database.execute("SELECT * FROM runs").fetchall()
    assert not mine.exists(), "that is what SQLite does"
    mine.write_text("of the user")
    with pytest.raises(BadInput, match="journal"):
        require_places(None, "orch", Path("out"))
    assert mine.read_text() == "of the user"


def test_a_transaction_that_was_cut_is_undone() -> None:
    file = Path("out/mlflow.db")
    prepared(file, Path("out/mlartifacts").absolute().as_uri())
    with_journal(file, "")
    assert kept_in(file, "orch", ()).location == Path("out/mlartifacts").absolute().as_uri()
    assert not Path("out/mlflow.db-journal").exists()
    with closing(sqlite3.connect(file)) as database:
        assert not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'filler'").fetchall()


def test_a_database_that_another_process_locks_is_said_to_be_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("out/mlflow.db")
    prepared(file, Path("out/mlartifacts").absolute().as_uri())
    monkeypatch.setattr(tracking_database, "PATIENCE", 0.1)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BadInput, match="locked by another process") as caught:
            require_places(None, "orch", Path("out"))
    assert "database of MLflow" not in str(caught.value)
    require_places(None, "orch", Path("out"))


def test_what_is_no_database_is_refused_before_any_work() -> None:
    Path("out").mkdir()
    Path("out/mlflow.db").write_text("no database at all, but some text that is long enough to be looked at")
    with pytest.raises(BadInput, match="another database"):
        require_places(None, "orch", Path("out"))


@pytest.mark.parametrize(
    "more",
    [
        "status, artifact_uri REFERENCES places(uri) ON DELETE SET DEFAULT",
        "status, artifact_uri AS (status)",
        "status, artifact_uri REFERENCES places(uri) ON UPDATE CASCADE",
        "status UNIQUE, artifact_uri); CREATE TABLE other (x REFERENCES runs(status) ON UPDATE SET NULL",
    ],
)
def test_columns_that_change_by_themselves_are_refused(more: str) -> None:
    tables = (
        "CREATE TABLE experiments (experiment_id, name, artifact_location); CREATE TABLE tags (key, value, run_uuid);"
    )
    for file, runs in ((Path("plain.db"), "status, artifact_uri"), (Path("acting.db"), more)):
        with closing(sqlite3.connect(file)) as database:
            database.executescript(f"{tables} CREATE TABLE runs (run_uuid, experiment_id, {runs})")
    assert kept_in(Path("plain.db"), "orch", ()) == Kept()
    with pytest.raises(BadInput, match="by itself"):
        kept_in(Path("acting.db"), "orch", ())


@pytest.mark.parametrize(
    "name",
    [
        "mlartifacts",
        "mlartifacts/models",
        "mlartifacts/{run}",
        "mlartifacts/{run}/artifacts",
    ],
)
def test_links_lead_no_tracked_file_elsewhere(tracked: None, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect("out/mlflow.db")) as database:
        ((run,),) = database.execute("SELECT run_uuid FROM tags WHERE key = 'orch.level' AND value = 'parent'")
    place = Path("out", name.format(run=run))
    if place.exists():
        place.rename("moved")
    place.symlink_to(Path("elsewhere").absolute())
    capsys.readouterr()
    assert main(audit("plan.yaml", "--force")) == 2
    assert place.name in capsys.readouterr().err and not Path("elsewhere").exists()


def check_for_the_owner_alone(artifacts: Path) -> None:
    assert stat.S_IMODE(artifacts.stat().st_mode) == 0o700
    named = [file for file in artifacts.rglob("*") if file.name == "scores.parquet" or file.suffix == ".csv"]
    assert named and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in named)


def test_tracked_files_are_for_the_owner(first_run: Path) -> None:
    check_for_the_owner_alone(first_run / "out" / "mlartifacts")


@pytest.mark.long
def test_runs_in_two_folders_share_a_database_whose_files_are_for_the_owner(plan: str, store: Path) -> None:
    """In short: the test above."""
    tracked_at(store, f"sqlite:///{Path('tracked.db').absolute()}")
    for out in ("one", "two"):
        assert main(audit(out=out)) == 0, "the experiment of an earlier run in another folder"
    check_for_the_owner_alone(Path("mlartifacts"))


def test_places_of_runs_are_those_below_the_experiments() -> None:
    own = [Path("/out/mlartifacts")]
    location, run = "file:///out/mlartifacts", "a" * 32
    assert not list(foreign(Kept(location, ((run, f"{location}/{run}/artifacts"),)), own))
    assert not list(foreign(Kept("/out/mlartifacts", ((run, f"/out/mlartifacts/{run}/artifacts"),)), own))
    for identity, uri in (
        (run, f"{location}/../{run}/artifacts"),
        (run, f"{location}/{run}/artifacts?x"),
        (run, f"file://host/out/mlartifacts/{run}/artifacts"),
        (run, f"{location}/%2e%2e/{run}/artifacts"),
        ("../../x", f"{location}/../../x/artifacts"),
        (run, f"http://host/{run}/artifacts"),
        (run, ""),
    ):
        assert list(foreign(Kept(location, ((identity, uri),)), own)) == [uri], uri
    for doubtful in ("FILE://{}", "fi\tle://{}", " file://{}", "file:{}", "{}/", "file://{}\n"):
        assert list(foreign(Kept(doubtful.format(own[0])), own)), doubtful
    encoded = Path("/out/p%2f..%2fx/mlartifacts")
    assert list(foreign(Kept(str(encoded)), [encoded])) and not list(foreign(Kept(encoded.as_uri()), [encoded]))
    for elsewhere in ("mlflow-artifacts:/x", "http://host/x", "file://host/out/mlartifacts", "/out", "dbfs:/x"):
        assert list(foreign(Kept(elsewhere), own)) == [elsewhere]
    assert leads_to("mlflow-artifacts://host/x")[1] == leads_to("https://host/x")[1] == "mlflow-login"


def test_the_file_of_a_database_is_the_one_that_is_opened() -> None:
    from sqlalchemy.engine import make_url

    for uri in (
        "sqlite:////a/b.db",
        "sqlite:///b.db",
        "sqlite:////a%20b/c.db?x=1",
        "sqlite:////a #1/b.db",
        "sqlite:////100% /b",
    ):
        assert str(file_of(uri)) == make_url(uri).database, uri
    for uri in (
        "sqlite:///file:/a.db?uri=true",
        "sqlite:///%66ile:/tmp/a.db",
        "sqlite:///file%3A/tmp/a.db",
        "sqlite:////tmp/a.db?timeout=1&%75ri=true",
        "sqlite:////tmp/a.db#x?uri=1",
    ):
        with pytest.raises(BadInput, match="within an address"):
            check_uri(uri)
    os.mkfifo("pipe.db")
    for uri in ("sqlite:///pipe.db", "sqlite:///pip%65.db"):
        with pytest.raises(BadInput, match="pipe"):
            check_uri(uri)


def test_a_database_of_something_else_is_not_changed(
    plan: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect("db.sqlite3")) as database:
        database.execute("CREATE TABLE metrics (day, value)")
        database.commit()
    before = Path("db.sqlite3").read_bytes()
    tracked_at(store, "sqlite:///db.sqlite3")
    assert "is no database of MLflow" in refused(audit(plan), capsys)
    assert Path("db.sqlite3").read_bytes() == before


@pytest.mark.parametrize("path", ["l/../t.db", "./l/../../t.db", "{here}/l/../t.db", "../l/../t.db", "l/..%2Ft.db"])
def test_no_database_lies_behind_two_dots_that_a_link_may_stand_before(path: str, tmp_path: Path) -> None:
    """The system follows the link, and MLflow takes name and dots away: two files, of which one is looked at."""
    Path("sub", "inner").mkdir(parents=True)
    Path("l").symlink_to("sub/inner")
    with pytest.raises(BadInput, match="behind the name of a folder"):
        check_uri(f"sqlite:///{path.format(here=tmp_path)}")
    for plain in ("t.db", "../t.db", f"{tmp_path}/t.db"):
        check_uri(f"sqlite:///{plain}")


@pytest.mark.parametrize("place", ["out", "out/mlflow.db", "out/mlflow.db-journal", "out/mlflow.db-wal"])
@pytest.mark.parametrize("whose", ["of another user", "open to others"])
def test_no_run_is_tracked_in_a_database_that_others_can_change(
    place: str, whose: str, plan: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("out").mkdir()
    Path("out", "mlflow.db").touch()
    if place != "out":
        Path(place).touch()
    for each in (Path("out"), *Path("out").iterdir()):
        each.chmod(0o755 if each.is_dir() else 0o644)
    if whose == "open to others":
        Path(place).chmod(0o777)
    else:
        real, other = Path.stat, os.geteuid() + 1

        def stat_of(self: Path, **options: bool) -> os.stat_result:
            found = real(self, **options)
            if not str(self.absolute()).endswith(f"/{place}"):
                return found
            return os.stat_result((*found[:4], other, *found[5:]))

        monkeypatch.setattr(Path, "stat", stat_of)
    assert place.partition("/")[2] in refused(audit(plan), capsys)
    monkeypatch.setenv("ORCH_ALLOW_STORES", str(Path("out").absolute()))
    require_ours(Path("out", "mlflow.db").absolute())


def test_a_database_within_a_folder_that_others_cannot_enter_may_have_any_mode() -> None:
    Path("out").mkdir(mode=0o700)
    Path("out", "mlflow.db").touch()
    Path("out", "mlflow.db").chmod(0o666)
    require_ours(Path("out", "mlflow.db").absolute())


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "link in place of a folder"])
def test_tracked_files_of_a_run_that_goes_on_are_files_of_their_own(kind: str, tmp_path: Path) -> None:
    folder, mine = tmp_path / "out" / "mlartifacts", tmp_path / "mine"
    place = folder / "a1" / "artifacts" / "figures" / "auc.svg"
    place.parent.mkdir(parents=True)
    mine.write_text("of the user")

    def require() -> None:
        uri = f"{folder.as_uri()}/{{}}/artifacts"
        kept = Kept(folder.as_uri(), (("a1", uri.format("a1")), ("none", uri.format("none"))))
        require_allowed(None, f"sqlite:///{tmp_path}/out/mlflow.db", "orch", tmp_path / "out", kept)

    place.write_text("of an earlier run")
    require()
    place.unlink()
    if kind == "link":
        place.symlink_to(mine)
    elif kind == "hard link":
        place.hardlink_to(mine)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.parent.rmdir()
        place.parent.symlink_to(tmp_path)
    with pytest.raises(CannotWrite):
        require()


@pytest.mark.timeout(60)
def test_what_says_which_run_goes_on_is_a_file_with_a_tag(tmp_path: Path) -> None:
    for name in (OPEN_FILE, FINISHED_FILE):
        os.mkfifo(tmp_path / name)
    assert tokens_in(tmp_path) == []
    for name in (OPEN_FILE, FINISHED_FILE):
        (tmp_path / name).unlink()
    (tmp_path / OPEN_FILE).write_text("x' or tags.orch.run != '")
    (tmp_path / FINISHED_FILE).write_text('{"run": "x\' or tags.a != \'", "of": "x"}')
    assert tokens_in(tmp_path) == []
    (tmp_path / OPEN_FILE).write_text("a1")
    (tmp_path / FINISHED_FILE).write_text('{"run": "b2", "of": "x"}')
    assert tokens_in(tmp_path) == ["a1", "b2"]

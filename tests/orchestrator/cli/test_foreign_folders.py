"""A folder that somebody else made: links in it lead no writer elsewhere, and nothing in it reaches the network."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits.data import shards
from audits.data.catalogue import load
from audits.errors import BadInput
from audits.writing import CannotWrite
from orchestrator.apollo.page import page as render
from orchestrator.cli.main import main
from orchestrator.engine.plan.reach import OPTION, VARIABLE
from orchestrator.engine.run import output_folder
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from orchestrator.kinds import load_plan
from orchestrator.scored.run import claim
from tests.cases.apollo_result import write_whole_run
from tests.cases.families import family
from tests.cases.runs import draw_only

OWN = "what the reader wrote\n"
WRITTEN = ("report.html", "figures/auc.csv", "figures/auc.svg", "figures/auc.png", "figures/verdict.csv")


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of ``orch score``, with the file of scores beside it."""
    folder = tmp_path_factory.mktemp("scored")
    rng = np.random.default_rng(0)
    rows = [f"person{place},{place % 2},{rng.normal() + place % 2}" for place in range(80)]
    (folder / "scores.csv").write_text("\n".join(["id,member,score", *rows]))
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "auc", "verdict")
        assert main(["score", str(folder / "scores.csv"), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def theirs(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run as it came from a supplier; the reader's own file lies beside it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(scored, tmp_path / "theirs")
    (tmp_path / "own").write_text(OWN)
    return tmp_path / "theirs"


def refused(words: list[str], capsys: pytest.CaptureFixture[str], named: str) -> None:
    """Check that a command ends with exit code 2 and one line that names what is in the way."""
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("orch: ") and said.count("\n") == 1 and named in said, said


def test_a_report_replaces_links_and_writes_through_none(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_only(monkeypatch, "auc", "verdict")
    own, absent = Path("own"), Path("absent")
    symbolic, dangling, hard, aside, again = (theirs / name for name in WRITTEN)
    for file, target in ((symbolic, own), (dangling, absent), (aside, own), (again, own)):
        file.unlink()
        file.symlink_to(target.absolute())
    hard.unlink()
    hard.hardlink_to(own)
    for name in (".report.html.part", "figures/.auc.csv.part"):
        (theirs / name).symlink_to(own.absolute())
    assert main(["report", str(theirs)]) == 0
    assert own.read_text() == OWN and not absent.exists() and own.stat().st_nlink == 1
    for name in WRITTEN:
        assert stat.S_ISREG((theirs / name).lstat().st_mode) and (theirs / name).stat().st_size > 100, name
    assert not [name for name in os.listdir(theirs / "figures") if name.startswith(".tmp")]


@family(
    "kind, name",
    product(("pipe", "folder"), ("figures/auc.csv", "figures/auc.svg", "report.html")),
    default=(0, 4, 5),
)
def test_a_report_is_refused_where_no_file_can_be(
    theirs: Path, kind: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "auc")
    (theirs / name).unlink()
    if kind == "pipe":
        os.mkfifo(theirs / name)
    else:
        (theirs / name).mkdir()
    refused(["report", str(theirs)], capsys, name)
    assert stat.S_ISFIFO((theirs / name).stat().st_mode) == (kind == "pipe")


@family("command, to", product(("report", "score", "compare"), ("elsewhere", "absent", "file")), default=(0, 4, 8))
def test_a_folder_of_figures_that_is_a_link_is_refused(
    theirs: Path, command: str, to: str, capsys: pytest.CaptureFixture[str], scored: Path
) -> None:
    Path("elsewhere").mkdir()
    shutil.rmtree(theirs / "figures")
    if to == "file":
        (theirs / "figures").write_text("")
    else:
        (theirs / "figures").symlink_to(Path(to).absolute())
    words = ["report", str(theirs)]
    if command == "score":
        words = ["score", str(scored.parent / "scores.csv"), "--out", str(theirs)]
    if command == "compare":
        (theirs / "result.json").unlink()
        shutil.copytree(scored, "other")
        words = ["compare", str(scored), "other", "--out", str(theirs)]
    refused(words, capsys, "figures")
    assert not os.listdir("elsewhere") and not Path("absent").exists()


def test_scores_are_written_beside_links_and_through_none(
    theirs: Path, scored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch)
    for name in ("scores.parquet", "result.json"):
        (theirs / name).unlink(missing_ok=name != "result.json")
    for name in (".scores.parquet.part", ".result.json.part", "scores.parquet", "result.json"):
        (theirs / name).symlink_to(Path("own" if name != "result.json" else "absent").absolute())
    assert main(["score", str(scored.parent / "scores.csv"), "--out", str(theirs)]) == 0
    assert Path("own").read_text() == OWN and not Path("absent").exists()
    assert json.loads((theirs / "result.json").read_text())["kind"] == "score"


@pytest.mark.long
def test_a_comparison_is_written_through_no_link(
    tmp_path: Path, theirs: Path, scored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: reports and scores, above."""
    draw_only(monkeypatch, "differences")
    out = tmp_path / "compared"
    (out / "figures").mkdir(parents=True)
    for name in ("compare.json", "report.html", "figures/differences.csv"):
        (out / name).symlink_to(Path("own").absolute())
    assert main(["compare", str(scored), str(theirs), "--out", str(out)]) == 0
    assert Path("own").read_text() == OWN and json.loads((out / "compare.json").read_text())["kind"] == "compare"


@contextmanager
def nothing_new_in(monkeypatch: pytest.MonkeyPatch, code: int) -> Iterator[None]:
    """Let no file be made, as in a folder that may only be read (which the superuser may write all the same)."""
    real = os.open

    def opened(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        yield


@family("code", [errno.EACCES, errno.EROFS], default=(1,))
def test_a_report_of_a_folder_that_may_only_be_read_is_refused(
    theirs: Path, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.stat().st_mtime_ns for file in theirs.rglob("*")}
    with nothing_new_in(monkeypatch, code):
        refused(["report", str(theirs)], capsys, os.strerror(code))
    assert {file: file.stat().st_mtime_ns for file in theirs.rglob("*")} == before


@pytest.mark.parametrize("name", [*output_folder.OF_RUNS, "run.json", "tuned.yaml"])
def test_no_run_writes_over_a_file_that_no_run_has_left(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "figures":
        Path(name).mkdir()
    else:
        Path(name).write_text(OWN)
    plan = ["mia-smoke", "--set", "compute.workers=0", "--store", "store", "--out", "."]
    refused(["sweep", "mia-epochs", *plan], capsys, name)
    if name in output_folder.OF_RUNS:
        refused(["audit", "mia", *plan, "--aggregate-only"], capsys, name)
        Path("scores.tsv").write_text("member\tscore\n0\t0\n1\t1\n")
        if name != "result.json":  # by which `orch score` knows a folder of its own
            refused(["score", "scores.tsv", "--out", "."], capsys, name)
    assert set(os.listdir()) <= {name, "scores.tsv"}
    assert name == "figures" or Path(name).read_text() == OWN


@pytest.mark.parametrize("name", ["figures", "mlartifacts", "mlflow.db", "orch.log"])
@pytest.mark.parametrize("to", ["elsewhere", "absent", "own"])
def test_no_run_begins_in_a_folder_in_which_links_would_be_written(
    tmp_path: Path, name: str, to: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("elsewhere", "out"):
        Path(folder).mkdir()
    Path("own").write_text(OWN)
    Path("out", name).symlink_to(Path(to).absolute())
    refused(["audit", "mia", "mia-smoke", "--out", "out", "--set", "compute.workers=0"], capsys, name)
    assert Path("own").read_text() == OWN and not os.listdir("elsewhere") and not Path("absent").exists()


@pytest.mark.parametrize("name", ["mlflow.db", "orch.log"])
@pytest.mark.parametrize("kind", ["hard link", "pipe"])
def test_no_run_begins_where_its_log_or_database_is_another_file(
    tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("own").write_text(OWN)
    if kind == "pipe":
        os.mkfifo(Path("out", name))
    else:
        Path("out", name).hardlink_to("own")
    refused(["audit", "mia", "mia-smoke", "--out", "out", "--set", "compute.workers=0"], capsys, name)
    assert Path("own").read_text() == OWN


def test_no_folder_of_the_working_folder_is_verified_by_the_name_of_a_shipped_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mia-smoke").mkdir()
    Path("mia-smoke", "plan.yaml").write_text("audit: {planted: true}\n")
    refused(["verify", "mia-smoke", "--workers", "0"], capsys, "has nothing of this plan")
    refused(["verify", "./mia-smoke", "--workers", "0"], capsys, "audit.planted")


def test_no_run_has_the_working_folder_for_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("...yaml").write_text("base: mia-smoke\nsettings: {short: {recipe.epochs: 1}}\n")
    refused(["sweep", "...yaml", "--set", "compute.workers=0"], capsys, "--out FOLDER")
    assert os.listdir() == ["...yaml"]


@pytest.mark.parametrize("link", ["runs", "inner", "dangling"])
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["audit", "mia", "mia-smoke"], "mia"),
        (["sweep", "mia-epochs", "mia-smoke"], "mia-epochs"),
        (["sweep", "--resume", "mia-epochs"], "mia-epochs"),
        (["tune", "mia", "--vary", "split.shadows=8,16", "mia-smoke", "--metric", "lira.auc"], "tune-vary-shadows"),
        (["submit", "audit", "mia", "mia-smoke", "--store", "/srv/store"], "mia"),
        (["submit", "--attach", "orch-1"], "orch-1"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_no_run_goes_through_a_link_in_the_working_folder_that_nobody_named(
    words: list[str], name: str, link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "theirs").mkdir()
    monkeypatch.chdir(tmp_path / "theirs")
    monkeypatch.setattr("orchestrator.cli.submit.JobServer", lambda address: pytest.fail("a server was asked"))
    own = tmp_path / "own"
    if link != "dangling":
        (own / name).mkdir(parents=True)
    place = Path("runs") if link == "runs" else Path("runs", name)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(own if link == "runs" else own / name)
    refused(words, capsys, f"{place} is a link to {os.readlink(place)}")
    assert own.exists() == (link != "dangling") and not list(own.glob("*/*"))


@pytest.mark.timeout(60)
def test_nothing_waits_for_a_pipe_that_says_what_run_a_folder_holds(tmp_path: Path) -> None:
    for name in (output_folder.RESULT_FILE, output_folder.RUN_FILE, JOURNAL_FILE):
        os.mkfifo(tmp_path / name)
    output_folder.refuse_other_command(tmp_path, "audit")
    assert output_folder.goal_left(tmp_path) is None and output_folder.settings_left(tmp_path) == set()
    (tmp_path / output_folder.RESULT_FILE).unlink()
    (tmp_path / output_folder.RESULT_FILE).write_text("[" * 100_000)
    os.mkfifo(tmp_path / output_folder.PLAN_FILE)
    output_folder.refuse_other_plan(tmp_path, load_plan("mia-smoke"))
    with pytest.raises(BadInput, match="holds the result of a run of kind None"):
        claim(tmp_path)
    with pytest.raises(CannotWrite, match=JOURNAL_FILE):
        Journal(tmp_path / JOURNAL_FILE, {}).check(1)


def test_what_a_run_notes_goes_through_no_link(tmp_path: Path) -> None:
    out, own = tmp_path / "out", tmp_path / "own"
    out.mkdir()
    own.write_text(OWN)
    for name in ("plan.yaml", "run.json", ".plan.yaml.part", ".run.json.part"):
        (out / name).symlink_to(own)
    claim_folder(out, load_plan("mia-smoke"), force=True)
    output_folder.keep_run(out, "sweep", None)
    assert own.read_text() == OWN and not (out / "plan.yaml").is_symlink() and not (out / "run.json").is_symlink()


@pytest.mark.parametrize("to", ["absent", "own"])
def test_a_link_by_the_name_of_a_file_that_is_written_is_replaced(
    to: str, theirs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch)
    Path("own").write_text("")
    for file in (Path("file"), theirs / "file"):
        for words in (["report", str(theirs), "--summary"], ["report", str(theirs), "--junit"], ["cp", "mia-smoke"]):
            file.unlink(missing_ok=True)
            file.symlink_to(Path(to).absolute())
            assert main([*words, str(file), *(["--force"] if words[0] == "cp" else [])]) == 0
            assert not file.is_symlink() and len(file.read_text()) > 99
            assert Path("own").read_text() == "" and not Path("absent").exists()
    assert output_folder.place_of(Path("/dev/stdout")) == Path("/dev/stdout").resolve()
    assert output_folder.place_of(Path("/dev/shm/x")) == Path("/dev/shm/x")  # anybody may make links there
    os.mkfifo("pipe")
    refused(["cp", "mia-smoke", "pipe", "--force"], capsys, "pipe")
    (theirs / "new").symlink_to(Path("absent").absolute())
    refused(["new", "--kind", "mia", str(theirs / "new")], capsys, "new")
    assert not Path("absent").exists()


def test_shards_are_written_through_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own").write_text(OWN)
    Path("out").mkdir()
    for name in ("part-00000.parquet",):
        Path("out", name).symlink_to(tmp_path / "absent")
    assert main(["data", "shard", "digits", "out"]) in (0, 2)  # a file of that name may be refused
    assert not Path("absent").exists()

    from PIL import Image

    for split in ("train", "val"):
        for label in ("a", "b"):
            Path("images", split, label).mkdir(parents=True)
            Image.new("L", (8, 8), 9).save(Path("images", split, label, f"{split}.png"))
    Path("packed").mkdir()
    Path("packed", "lock").symlink_to(tmp_path / "own")
    assert main(["data", "shard", "folder:images?size=8", "packed", "--workers", "1"]) == 2
    assert Path("own").read_text() == OWN
    Path("packed", "lock").unlink()
    Path("packed", "begun.json.part").symlink_to(tmp_path / "own")
    main(["data", "shard", "folder:images?size=8", "packed", "--workers", "1"])
    assert Path("own").read_text() == OWN


def test_groups_of_copies_are_written_through_no_link_of_a_run(theirs: Path) -> None:
    (theirs / "groups.csv").symlink_to(Path("absent").absolute())
    assert main(["data", "duplicates", "digits", str(theirs / "groups.csv")]) == 0
    assert not Path("absent").exists() and (theirs / "groups.csv").read_text().startswith("id,group")


def test_what_names_people_is_for_its_owner_alone(
    theirs: Path, scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_only(monkeypatch, "auc")
    former = os.umask(0o022)
    try:
        assert main(["score", str(scored.parent / "scores.csv"), "--out", "new/run"]) == 0
        (theirs / "report.html").chmod(0o644)
        assert main(["report", str(theirs)]) == 0
        assert main(["cp", "mia-smoke", "plan.yaml"]) == 0
    finally:
        os.umask(former)
    modes = {file: stat.S_IMODE(file.stat().st_mode) for file in Path("new/run").rglob("*")}
    assert modes and all(mode == (0o700 if file.is_dir() else 0o600) for file, mode in modes.items()), modes
    assert stat.S_IMODE(Path("new/run").stat().st_mode) == 0o700
    assert stat.S_IMODE((theirs / "report.html").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path("plan.yaml").stat().st_mode) == 0o644


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that lists exposed points."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    write_whole_run(folder)
    return folder


@pytest.fixture
def exposing(theirs: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A result whose page lists points 0 to 2, and shows pictures of them where it has the data."""
    shutil.rmtree(theirs)
    shutil.copytree(whole, theirs)
    result: dict[str, Any] = json.loads((theirs / "result.json").read_text())
    result["fingerprints"] = {"data": load("fashion14").contents, "points": {}, "members": {}}
    seen: list[Any] = []
    pretended = dataclasses.replace(
        render.PAGE, read=lambda out: out, fill=lambda run, out, images: seen.append(sorted(images))
    )
    monkeypatch.setattr(render, "PAGE", pretended)
    result["seen"] = seen
    return result


def reported(result: dict[str, Any], name: str, *options: str) -> list[int]:
    """Return the points of which ``orch report`` shows pictures where the plan's data are ``name``."""
    changed = {**result, "plan": {**result["plan"], "data": {"name": name, "root": None}}}
    text = json.dumps({key: value for key, value in changed.items() if key != "seen"})
    Path("theirs/result.json").write_text(text)
    assert main(["report", "theirs", *options]) == 0
    found: list[int] = result["seen"][-1]
    return found


@family("name", ["parquet:s3://theirs/points", "parquet:gs://theirs/points?anonymous=true"], default=(0,))
def test_a_report_reads_no_data_from_elsewhere_unless_it_is_let(
    exposing: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def elsewhere(uri: str) -> None:
        asked.append(uri)
        raise BadInput("nobody answers")

    monkeypatch.setattr(shards, "file_system", elsewhere)
    assert reported(exposing, name) == [] and not asked
    said = capsys.readouterr().err
    assert said.count("without thumbnails: ") == 1
    word = shlex.split(said.partition(f"{OPTION} ")[2].partition(", or")[0])[0]
    assert reported(exposing, name, OPTION, word) == [] and len(asked) == 1
    monkeypatch.setenv(VARIABLE, word)
    assert reported(exposing, name) == [] and len(asked) == 2


def test_a_report_shows_pictures_of_the_data_of_the_run_alone(
    exposing: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load("fashion14")
    for file, inputs in (("same.npz", whole.inputs), ("private.npz", 255 - whole.inputs)):
        np.savez(file, inputs=inputs, labels=whole.labels)
    shown = reported(exposing, "fashion14")
    assert shown
    other = load("npz:private.npz").contents
    assert reported(exposing, "npz:private.npz") == [] and "fingerprint" in capsys.readouterr().err
    assert reported({**exposing, "fingerprints": {**exposing["fingerprints"], "data": other}}, "npz:private.npz")
    earlier = {**exposing, "fingerprints": None}
    assert reported(earlier, "fashion14") == shown
    assert reported(earlier, "npz:private.npz") == [] and "fingerprint" in capsys.readouterr().err


@family("name", ["npz:pipe", "table:pipe", "text:pipe", "parquet:pipe", "folder:pipe", "imdb:pipe"], default=(0, 3))
def test_a_report_does_not_wait_for_a_pipe_that_a_plan_calls_its_data(exposing: dict[str, Any], name: str) -> None:
    os.mkfifo("pipe")
    assert reported(exposing, name) == []

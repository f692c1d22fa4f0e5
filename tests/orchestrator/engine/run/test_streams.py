"""What is printed where an encoding lacks letters, a stream is closed or a terminal is gone: never an error."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.engine.plan.files import shipped_plans
from orchestrator.engine.run.streams import PLAIN, write_what_can_be_written
from tests.cases.runs import draw_only
from tests.cases.undrawn import UNDRAWN

SAID = "ε ≥ 0.49, AUC −.02 …"


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("ascii", SAID, b"epsilon >= 0.49, AUC -.02 ..."),
        ("latin-1", "10\xa0% ± ½ é Ж", "10\xa0% ± ½ é ?".encode("latin-1")),
        ("utf-8", SAID, SAID.encode()),
        ("utf-8", "run\udcff", b"run\xff"),
        ("ascii", "run\udcff−", b"run\xff-"),
    ],
)
def test_letters_that_an_encoding_lacks_are_written_plainly(
    encoding: str, errors: str, text: str, written: bytes
) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors=errors)
    write_what_can_be_written(stream)
    stream.write(text)
    stream.flush()
    assert raw.getvalue() == written


def test_plain_letters_are_plain() -> None:
    assert "".join(PLAIN.values()).isascii() and not any(letter.isascii() for letter in PLAIN)


def test_a_rule_that_a_user_asked_for_is_kept() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    write_what_can_be_written(stream)
    assert stream.errors == "backslashreplace"


SCORE = ("score", "scores.csv", "--member", "member", "--score", "score", "--out", "out")
REPORT = ("report", "out")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of scores, and what was found in it in ``out``."""
    folder = tmp_path_factory.mktemp("judged")
    rows = [f"{place % 2},{(place * 37 % 101) / 101}" for place in range(200)]
    (folder / "scores.csv").write_text("member,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        patch.chdir(folder)
        assert main([*SCORE]) == 0
    return folder


def carried_out(
    words: Sequence[str], folder: Path, redirections: str = "", program: Sequence[str] = UNDRAWN, **variables: str
) -> Any:
    """Return how a command in ``folder`` has ended, with ``redirections`` of a shell."""
    return subprocess.run(
        f"exec {shlex.join([*program, *words])} {redirections}",
        shell=True,
        cwd=folder,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[4]), **variables},
    )


@pytest.mark.long
@pytest.mark.parametrize("redirections", [">&-", "<&- >&- 2>&-"])
def test_a_command_whose_streams_are_closed_does_its_work(judged: Path, tmp_path: Path, redirections: str) -> None:
    """In short: the test below, of a light command."""
    shutil.copy(judged / "scores.csv", tmp_path)
    done = carried_out(SCORE, tmp_path, redirections)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["verdict"]
    assert "Verdict" not in (tmp_path / "out" / "scores.parquet").read_text(encoding="latin-1")


@pytest.mark.parametrize("redirections", [">&-", "<&- >&- 2>&-"])
def test_a_file_that_is_opened_takes_no_place_of_a_closed_stream(tmp_path: Path, redirections: str) -> None:
    program = [sys.executable, "-m", "orchestrator.cli.main"]
    done = carried_out(("cp", "apollo-smoke", "copy.yaml"), tmp_path, redirections, program)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "copy.yaml").read_text("utf-8") == shipped_plans()["apollo-smoke"]


@pytest.mark.long
def test_a_report_whose_streams_are_closed_is_written(judged: Path) -> None:
    """In short: the test above."""
    page, result = judged / "out" / "report.html", (judged / "out" / "result.json").read_bytes()
    page.unlink()
    done = carried_out(REPORT, judged, "<&- >&- 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "</html>" in page.read_text("utf-8")[-20:]
    assert (judged / "out" / "result.json").read_bytes() == result


def test_a_terminal_of_another_encoding_hears_a_result_whole(
    judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(judged / "scores.csv", tmp_path)
    draw_only(monkeypatch)
    monkeypatch.chdir(tmp_path)
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii", errors="strict") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main([*SCORE]) == 0
        stream.flush()
        said = raw.getvalue()
    assert b"epsilon >= " in said and b"Verdict: " in said and said.isascii()


@pytest.mark.long
def test_a_process_in_a_terminal_of_another_encoding_is_heard_whole(judged: Path, tmp_path: Path) -> None:
    """In short: the test above, in this process."""
    shutil.copy(judged / "scores.csv", tmp_path)
    done = carried_out(SCORE, tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"epsilon >= " in done.stdout and b"Verdict: " in done.stdout and done.stdout.isascii()

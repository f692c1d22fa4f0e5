"""A command that is refused leaves its error in the files for CI, and a step's summary of GitHub's is appended to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from actors.submit import Ended
from orchestrator.cli import submit
from orchestrator.cli.gating import STEP_SUMMARY, is_appended, leave_error, write_for_ci
from orchestrator.cli.main import main
from orchestrator.engine.ci.summary import is_summary
from orchestrator.report.result import read_result
from tests.cases.apollo_result import write_run
from tests.cases.families import family
from tests.cases.runs import draw_only

REFUSED = (
    ("audit", "mia", "no-such-plan.yaml"),
    ("audit", "mia", "--set", "split.shadows=-1"),
    ("audit", "mia", "--set", "data.name=python:not_allowed:points"),
    ("audit", "no-such-audit"),
    ("audit", "mia", "--fial-above", "auc=.6"),
    ("audit", "mia", "--fail-above", "acu=.6"),
    ("audit", "mia", "--out", ""),
    ("report", "no-such-folder"),
    ("score", "no-such-file.csv"),
    ("score", "--delta", "much", "scores.csv"),
    ("submit", "audit", "mia", "no-such-plan.yaml"),
)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(STEP_SUMMARY, raising=False)
    monkeypatch.delenv("ORCH_ALLOW_CODE", raising=False)


def error_of(file: str) -> str:
    """Return the message of the one error of a JUnit file."""
    root = ET.parse(file).getroot()
    assert (root.attrib["tests"], root.attrib["errors"], root.attrib["failures"]) == ("1", "1", "0")
    (error,) = root.iter("error")
    return error.attrib["message"]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_is_refused_stands_in_both_files(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # its own files are written anew
        assert main([*command, "--junit", "ci/orch.xml", "--summary=ci/orch.md"]) == 2
        said = capsys.readouterr().err.removeprefix("orch: ").strip()
        assert error_of("ci/orch.xml") == said
        text = Path("ci/orch.md").read_text()
        assert "exit code 2" in text.splitlines()[0] and is_summary(text.encode())
        assert said.replace("\\", "") in text.replace("\\", "")


def test_a_file_of_somebody_else_stays_and_the_other_one_says_so() -> None:
    mine = Path("mine.md")
    mine.write_text("# mine\n")
    assert main(["audit", "mia", "--junit", "orch.xml", "--summary", "mine.md"]) == 2
    assert mine.read_text() == "# mine\n" and "mine.md" in error_of("orch.xml")
    assert main(["audit", "mia", "--junit", "one", "--summary", "one"]) == 2
    assert not Path("one").exists()


def test_a_variable_that_is_not_set_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--junit", "--summary"):
        assert main(["audit", "mia", option, ""]) == 2
        assert f"{option} is empty" in capsys.readouterr().err


def test_no_secret_gets_into_the_files() -> None:
    words = ["audit", "mia", "--target", "http://me:hunter2@there", "--set", "split.shadows=-1"]
    assert main([*words, "--fail-above", "http://me:hunter2@there", "--junit", "a", "--summary", "b"]) == 2
    assert "hunter2" not in Path("a").read_text() + Path("b").read_text()


@family("held", ["", "# Another command\n", "no end of a line", "## mine\n\nPage: mine\n"], default=(2, 3))
def test_the_summary_of_a_step_is_appended_to(held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = tmp_path / "step.md"
    step.write_text(held)
    monkeypatch.setenv(STEP_SUMMARY, str(step))
    draw_only(monkeypatch)
    write_run(tmp_path / "run", targets=2, points=100)
    assert main(["audit", "mia", "no-such-plan.yaml", "--summary", "step.md"]) == 2
    assert main(["report", "run", "--summary", str(step)]) == 0
    text = step.read_text()
    assert text.startswith(held)
    write_for_ci(read_result(tmp_path / "run"), tmp_path / "run", None, tmp_path / "own.md")
    assert text.endswith("\n\n" + (tmp_path / "own.md").read_text())
    assert text.count("\n## ") + text.startswith("## ") == 2 + held.startswith("## ")


def test_only_what_github_names_is_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STEP_SUMMARY, "")
    assert not is_appended(tmp_path)
    monkeypatch.setenv(STEP_SUMMARY, str(tmp_path / "step.md"))
    for _ in range(2):
        leave_error("orch audit", "why", 2, None, tmp_path / "other.md")
        leave_error("orch audit", "why", 2, None, tmp_path / "step.md")
    assert (tmp_path / "other.md").read_text().count("why") == 1
    assert (tmp_path / "step.md").read_text().count("why") == 2


def test_a_job_without_a_result_is_an_error_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work: Any = SimpleNamespace(words=("audit", "mia"), out=tmp_path, junit=tmp_path / "orch.xml", summary=None)
    submit.write_files(work, submit.exit_code(Ended("FAILED", 3, "")))
    assert "did not finish" in error_of("orch.xml")

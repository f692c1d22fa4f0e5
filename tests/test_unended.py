"""A suite that does not end by itself: what it shows, and that no test can hold it up or end every worker of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.waiting import wait_for

pytestmark = pytest.mark.slow  # they wait, so they begin with the first

CONFTEST = """
import os, pathlib, pytest
from tests.cases.unended import Told
ended = Told.ended
def noted(self, *given):
    pathlib.Path("ended").touch()
    ended(self, *given)
Told.ended = noted
MAIN = os.getpid()
@pytest.hookimpl(trylast=True)
def pytest_runtest_logstart(nodeid):
    if os.getpid() == MAIN:
        pathlib.Path(nodeid.partition("::")[2]).touch()
"""
STUCK = """
import ctypes, time
def test_before(): pass
def test_stuck():
    try:
        time.sleep(100)
    except BaseException:
        ctypes.CDLL(None).sleep(100)
def test_after(): pass
"""
SLEEPS = """
import pathlib, time, pytest
@pytest.mark.timeout(90)
def test_sleeps():
    for _ in range(300):
        time.sleep(0.1)
        if pathlib.Path("ended").exists():
            break
"""
SWALLOWS = """
import pathlib, time, pytest
@pytest.mark.timeout(60)
def test_it():
    pathlib.Path("begun").touch()
    try:
        time.sleep(50)
    except BaseException:
        pass
def test_after(): pathlib.Path("after").touch()
"""
WAITS_AND_FAILS = """
import pathlib, time
def test_it():
    while not pathlib.Path("begun").exists():
        time.sleep(.01)
    assert False
"""
ALONE = {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
WRONG = """
def test_wrong(): assert "seen" == "at once"
"""


def suite(folder: Path, processes: int, *words: str, **files: str) -> subprocess.Popen[str]:
    """Start pytest in a folder with files of tests; a test has one second, and one of grace.

    The process that prints the summary makes a file of each test that it has heard of.
    """
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    plugins = ("-p", "tests.cases.forked", "-p", "pytest_timeout", "-p", "tests.cases.unended")
    words = (*words, *plugins, "-o", "timeout=1", "-c", "none.ini", "--rootdir", str(folder))
    many = ("--processes", str(processes)) if processes else ()
    (folder / "none.ini").write_text("[pytest]\n")
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *words, *many, "."],
        cwd=folder,
        env={**surroundings, **ALONE, "ORCH_TEST_GRACE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_stuck_test_is_named_and_ends_one_process_alone(tmp_path: Path) -> None:
    passing = dict.fromkeys("abcd", "def test_it(): pass")
    said, _ = suite(tmp_path, 1, **passing, stuck=STUCK).communicate(timeout=240)
    assert "process 0 ended in this test: exit code 1" in said, said
    assert "process 1" not in said
    assert '"test_stuck.py", line' in said.replace(f"{tmp_path}/", ""), said  # where it stands
    assert "1 failed, 6 passed" in said


def test_a_suite_that_ends_early_waits_for_no_test_that_will_not_end(tmp_path: Path) -> None:
    process = suite(tmp_path, 2, "-x", a=WAITS_AND_FAILS, b=SWALLOWS)
    said, _ = process.communicate(timeout=240)
    assert "stopping after 1 failures" in said and "1 failed" in said, said
    assert process.returncode == 1 and not (tmp_path / "after").exists()


def test_files_may_stand_in_any_order(tmp_path: Path) -> None:
    for name in ("z/c/test_1", "y/test_22", "z/d/test_333"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text("def test_it(): pass")
    order = "def pytest_collection_modifyitems(items):\n    items.sort(key=lambda item: len(item.path.stem))\n"
    (tmp_path / "z" / "conftest.py").write_text(order)
    said, _ = suite(tmp_path, 1).communicate(timeout=240)
    assert "3 passed" in said and "error" not in said, said


def test_parts_of_a_suite_are_all_of_it(tmp_path: Path) -> None:
    passing = dict.fromkeys("abcde", "def test_it(): pass\ndef test_that(): pass")
    said = [suite(tmp_path, 1, "-v", "--part", f"{part}/2", **passing).communicate(timeout=240)[0] for part in (1, 2)]
    assert "6 passed, 4 deselected" in said[0] and "4 passed, 6 deselected" in said[1], said
    wrong, _ = suite(tmp_path, 1, "--part", "3/2", **passing).communicate(timeout=240)
    assert "there are parts 1 to 2" in wrong and "passed" not in wrong


def test_files_may_be_fewer_than_processes(tmp_path: Path) -> None:
    said, _ = suite(tmp_path, 3, a="def test_it(): pass", b="def test_it(): pass").communicate(timeout=240)
    assert "2 passed" in said


@pytest.mark.parametrize("processes", [pytest.param(0, marks=pytest.mark.long), 1])
def test_failures_are_shown_at_once_and_sigterm_names_what_runs(tmp_path: Path, processes: int) -> None:
    process = suite(tmp_path, processes, a_wrong=WRONG, b_sleeps=SLEEPS)
    assert process.stdout is not None
    shown = ""
    while "assert 'seen' == 'at once'" not in shown:
        line = process.stdout.readline()
        assert line, shown
        shown += line
    assert "FAILED (call) test_a_wrong.py::test_wrong" in shown
    wait_for((tmp_path / "test_sleeps").exists)  # the process that prints the summary knows that it runs
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=600)
    assert "SIGTERM; running: test_b_sleeps.py::test_sleeps (since " in rest, rest
    assert process.returncode == 143

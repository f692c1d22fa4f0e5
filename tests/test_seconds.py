"""The end of a run names its slowest tests and folders, with many processes as with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.seconds import Clock, by_folder, slowest

ROOT = Path(__file__).resolve().parents[1]
WAITS = """
import subprocess, sys, time
def test_waits(): time.sleep(1.2)
def test_quick(): pass
"""
WORKS = """
import subprocess, sys
def test_works():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 1.1: pass"], check=True)
"""


def report(name: str, seconds: float, cpu: float) -> pytest.TestReport:
    """Return a report of a part of a test."""
    found = pytest.TestReport(name, ("", None, ""), {}, "passed", None, "call", duration=seconds)
    found.cpu = cpu  # type: ignore[attr-defined]  # as ``Clock`` leaves it
    return found


def test_parts_of_a_test_and_tests_of_a_folder_are_added_and_the_slowest_listed() -> None:
    clock = Clock()
    for name, seconds, cpu in (("a/test_a.py::x", 1.0, 0.1), ("a/test_a.py::x", 0.5, 0.2), ("a/test_a.py::y", 0.6, 0.0),
                               ("b/test_b.py::z", 3.0, 2.5)):  # fmt: skip
        clock.pytest_runtest_logreport(report(name, seconds, cpu))
    assert slowest(clock.tests) == ["    3.0     2.5  b/test_b.py::z", "    1.5     0.3  a/test_a.py::x"]
    assert [line.split() for line in slowest(by_folder(clock.tests))] == [["3.0", "2.5", "b"], ["2.1", "0.3", "a"]]


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("--processes", "1")])
def test_the_slowest_are_listed(tmp_path: Path, workers: tuple[str, ...]) -> None:
    """In short: the test above."""
    for folder, text in (("a", WAITS), ("b", WORKS)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"test_{folder}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    surroundings = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.cases.forked", "-p", "tests.cases.seconds", *workers],
        cwd=tmp_path,
        env={**surroundings, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    tests, _, folders = done.stdout.partition("slowest tests")[2].partition("slowest folders")
    listed = {line.split()[2]: [float(word) for word in line.split()[:2]] for line in rows(tests)}
    assert sorted(listed) == ["a/test_a.py::test_waits", "b/test_b.py::test_works"], done.stdout
    assert listed["a/test_a.py::test_waits"][1] < 1 < listed["b/test_b.py::test_works"][1]
    assert {line.split()[2] for line in rows(folders)} == {"a", "b"}
    kept = json.loads((tmp_path / ".pytest_cache/v/orch/seconds").read_text())
    assert set(kept) == {*listed, "a/test_a.py::test_quick"}


def rows(text: str) -> list[str]:
    """Return the lines of a section that begin with two numbers."""
    return [line for line in text.splitlines() if line[:1] == " " and len(line.split()) == 3]

"""What tests may start: a test that starts a program which a bare machine lacks, and does not declare it, fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.programs import BARE, MACHINE

ROOT = Path(__file__).parents[1]
STARTS = """
import os, shutil, subprocess, sys
import pytest

def test_the_bare_machine():
    subprocess.run(["sh", "-c", "make --version && git --version && cat /dev/null"], check=True)
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert shutil.which("rare") is None

def test_undeclared_by_name():
    subprocess.run(["rare"], check=True)

def test_undeclared_in_a_shell():
    subprocess.run("rare", shell=True, check=True)

def test_undeclared_by_path():
    subprocess.run([r"PLACE/rare"], check=True)

def test_undeclared_by_another_path_variable():
    subprocess.run(["rare"], check=True, env={"PATH": r"PLACE"})

def test_undeclared_and_spawned():
    os.waitpid(os.posix_spawn(r"PLACE/rare", ["rare"], dict(os.environ)), 0)

@pytest.mark.needs("rare")
def test_declared():
    subprocess.run(["rare"], check=True)
    subprocess.run("rare", shell=True, check=True)
    subprocess.run([r"PLACE/rare"], check=True)

@pytest.mark.needs("other")
def test_another_is_declared():
    subprocess.run([r"PLACE/rare"], check=True)

@pytest.mark.needs("rare", "absent", "gone")
def test_declared_and_missing():
    raise AssertionError("runs")

@pytest.mark.cluster
def test_on_a_cluster():
    subprocess.run(["bash"], check=True)
"""
FAILED = ("by_name", "in_a_shell", "by_path", "by_another_path_variable", "and_spawned")


def suite(folder: Path, path: str, *words: str, **variables: str) -> str:
    """Return what pytest prints of the tests that ``words`` choose, with more environment ``variables``."""
    surroundings = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**surroundings, "PATH": path, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("workers", [pytest.param((), marks=pytest.mark.long), ("--processes", "1")])
def test_undeclared_starts_fail_and_missing_programs_are_skipped_and_listed(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    place = tmp_path / "machine"
    place.mkdir()
    for name in ("rare", "other"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = cluster\n")
    (tmp_path / "test_it.py").write_text(STARTS.replace("PLACE", str(place)))
    path, plugins = f"{place}:{MACHINE.path_with(())}", ("-p", "tests.cases.forked", "-p", "tests.cases.programs")
    printed = suite(tmp_path, path, *plugins, "-rA", *workers, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    outcomes = {line.split("::")[1].split()[0]: line.split()[0] for line in printed.splitlines() if "::test_" in line}
    wrong = {f"test_undeclared_{name}" for name in FAILED} | {"test_another_is_declared"}
    assert {name for name, outcome in outcomes.items() if outcome in ("FAILED", "ERROR")} == wrong, printed
    assert {"test_the_bare_machine", "test_declared"} <= {n for n, outcome in outcomes.items() if outcome == "PASSED"}
    section = printed.partition("programs that are missing")[2].splitlines()
    assert section[1:4] == ["absent: 1 test skipped", "bash: 1 test skipped", "gone: 1 test skipped"], printed


@pytest.mark.long
def test_the_tests_that_declare_programs_are_skipped_on_a_bare_machine() -> None:
    words = ("mark.needs(", "BROWSER", "NEEDS_HOSTS")
    texts = {file: file.read_text() for file in sorted((ROOT / "tests").rglob("test_*.py")) if file != Path(__file__)}
    files = [str(file) for file, text in texts.items() if any(word in text for word in words)]
    printed = suite(ROOT, MACHINE.path_with(()), "-q", "-m", "needs", *files)
    last = printed.splitlines()[-1]
    assert "skipped" in last and not {"passed", "failed", "error", "errors"} & set(last.split()), printed
    listed = printed.partition("programs that are missing")[2].partition("short test summary")[0]
    missing = {line.partition(":")[0] for line in listed.splitlines() if " skipped" in line}
    assert {"bash", "chromium", "fish", "openssl", "sshd", "zsh"} <= missing and not missing & BARE, printed

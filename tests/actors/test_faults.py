"""Workers, nodes and drivers that die: the run completes, and only what was not finished is done again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import tests.actors.file_jobs
from actors.jobs import Workers, WorkersLost
from actors.pools import do_jobs
from tests.actors.file_jobs import FileJob, chain, done, drive, ignore, is_done, make_perform, perform, starts

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]


def expected(folder: Path) -> dict[str, str]:
    """What an undisturbed run writes."""
    for unit in reversed(chain(folder)):
        perform(unit)
    return done(folder)


def run_driver(kind: str, folder: Path, storage: Path) -> int:
    """Run one of file_jobs.py's drivers in a process of its own; return its exit status."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.actors.file_jobs", kind, str(folder), str(storage)]
    environment = {**os.environ, "RAY_AUTH_TOKEN": "7" * 64, "RAY_AUTH_MODE": "token", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def last(folder: Path, units: list[FileJob]) -> FileJob:
    """Return a job that kills its worker whenever it is done, once all ``units`` are."""
    return FileJob("last", str(folder), tuple(unit.key for unit in units), "die")


@pytest.mark.long
def test_a_killed_worker_costs_only_what_was_unfinished_and_a_deadly_job_is_given_up_by_name(
    cluster: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: ``test_a_killed_actor_costs_only_what_was_unfinished``."""
    monkeypatch.setattr(tests.actors.file_jobs, "MAX_LOSSES", 2)
    folder = tmp_path / "run"
    units = chain(folder, j1_1="die_once")
    with pytest.raises(WorkersLost, match=r"job last is given up: its worker died 2 time\(s\)"):
        drive(folder, cluster, ignore, [last(folder, units), *units])
    assert done(folder) == expected(tmp_path / "undisturbed")
    assert starts(folder, "1.1") == 2
    before = (folder / "at_death_of_1.1").read_text().split()
    assert "1.0" in before
    assert all(starts(folder, key) == 1 for key in before)
    assert starts(folder, "last") == 2


@pytest.mark.long
def test_killed_actors_are_replaced_and_a_deadly_unit_is_given_up(cluster: Workers, tmp_path: Path) -> None:
    """In short: the next test."""
    folder = tmp_path / "run"
    units = chain(folder, j1_1="die_once", j2_0="die_once")
    with pytest.raises(WorkersLost, match=r"job last is given up: its worker died 2"):
        do_jobs(
            [last(folder, units), *units],
            make_perform,
            replace(cluster, engine="actors"),
            on_progress=ignore,
            is_done=partial(is_done, folder),
            max_losses=2,
        )
    assert done(folder) == expected(tmp_path / "undisturbed")


def test_a_killed_actor_costs_only_what_was_unfinished(cluster: Workers, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    units = chain(folder, rows=2, j0_1="die_once")
    actors = replace(cluster, engine="actors")
    do_jobs(units, make_perform, actors, on_progress=ignore, is_done=partial(is_done, folder))
    for unit in reversed(chain(tmp_path / "undisturbed", rows=2)):
        perform(unit)
    assert done(folder) == done(tmp_path / "undisturbed")
    before = (folder / "at_death_of_0.1").read_text().split()
    assert "0.0" in before and starts(folder, "0.1") == 2
    assert all(starts(folder, key) == 1 for key in before)


@pytest.mark.long
def test_after_a_killed_driver_the_same_command_does_only_what_is_missing(tmp_path: Path) -> None:
    """In short: ``test_a_killed_driver_goes_on_with_the_same_command_and_says_what_it_reused``, of a whole audit."""
    folder, storage = tmp_path / "run", tmp_path / "ray"
    assert run_driver("killed", folder, storage) == -signal.SIGKILL
    finished = set(done(folder))
    assert len(finished) == 9
    assert run_driver("killed", folder, storage) == 0
    assert (folder / "planned").read_text().split() == ["1.2", "1.1", "1.0"]
    assert done(folder) == expected(tmp_path / "undisturbed")
    assert all(starts(folder, key) == 1 for key in finished)


@pytest.mark.long
def test_a_lost_node_costs_only_what_it_was_doing(tmp_path: Path) -> None:
    """In short: ``tests/orchestrator/engine/run/test_killed_driver.py``, of a whole audit."""
    folder = tmp_path / "run"
    assert run_driver("nodes", folder, tmp_path / "ray") == 0
    assert done(folder) == expected(tmp_path / "undisturbed")
    assert {unit.key: starts(folder, unit.key) for unit in chain(folder)} == {
        unit.key: 2 if unit.key == "1.0" else 1 for unit in chain(folder)
    }

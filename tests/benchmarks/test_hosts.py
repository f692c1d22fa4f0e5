"""The benchmark of hosts counts what came for its runs, and nothing else."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks import hosts, hosts_runs, record
from benchmarks.hosts_runs import Began

ROOT = Path(__file__).resolve().parents[2]
TITLES = ("ray::Toy.wait", "ray::Toy", "ray::IDLE", "ray::DashboardAgent", "sleep")


def test_what_came_for_a_run_is_counted() -> None:
    before = Counter(name for name, _ in hosts_runs.at_work(os.getpid()))
    with ExitStack() as stack:
        for title in TITLES:
            child = stack.enter_context(subprocess.Popen([title, "60"], executable="/bin/sleep"))
            stack.callback(child.kill)
        found = hosts_runs.at_work(os.getpid())
    assert Counter(name for name, _ in found) - before == {"Toy": 2}
    assert all(0 < size < 2**26 for name, size in found if name == "Toy")


def test_memory_is_what_a_process_holds() -> None:
    before = hosts_runs.memory(os.getpid())
    with mmap.mmap(-1, 2**26) as held:  # never memory that was freed and kept
        for page in range(0, 2**26, mmap.PAGESIZE):
            held[page] = 1
        assert 2**26 * 0.9 < hosts_runs.memory(os.getpid()) - before < 2**26 * 1.3  # other threads may take some
    del held


def test_pages_that_processes_share_count_once() -> None:
    rollup = Path("/proc/self/smaps_rollup").read_text()
    resident = int(next(line for line in rollup.splitlines() if line.startswith("Rss:")).split()[1]) * 1024
    assert hosts_runs.memory(os.getpid()) < resident  # at least the C library is mapped by others as well


def test_a_row_is_the_median_of_its_repeats() -> None:
    repeats = [Began((1.0, 2.0, 9.0), {"QueueServer": 3}, 7), Began((3.0, 4.0, 5.0), {"QueueServer": 3}, 9)]
    found = hosts.row("actors", 3, [*repeats, repeats[0]])
    assert (found["first_seconds"], found["median_seconds"], found["all_seconds"]) == (1.0, 2.0, 9.0)
    assert (found["bytes"], found["processes"]) == (7, 3)


@pytest.mark.parametrize("option", ["--runs", "--repeats"])
def test_fewer_than_one_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        hosts.main([option, "0"])
    assert stopped.value.code == 2
    assert f"{option} 0: give 1 or more" in capsys.readouterr().err


def test_the_docs_have_a_place_for_it() -> None:
    record.replace_section((ROOT / "docs" / "results" / "benchmarks.md").read_text(), "hosts", "")


@pytest.mark.long
@pytest.mark.cluster
def test_both_hosts_are_measured() -> None:
    command = [sys.executable, "-m", "benchmarks.hosts", "--runs", "1", "--repeats", "1"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    train, actors = json.loads(found.stdout)["rows"]
    assert (train["processes_by_name"]["QueueServer"], train["processes_by_name"]["RayTrainWorker"]) == (1, 1)
    assert actors["processes_by_name"] == {"QueueServer": 1, "ServingActor": 1}
    assert all(row["bytes"] > 2**27 and row["first_seconds"] > 0 for row in (train, actors))

"""``compute.workers: auto``: Ray where it is sooner done than the calling process, and one line that says why."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.cost import choice
from orchestrator.engine.cost.choice import EFFICIENCY, START_SECONDS, choose_workers, wall_seconds
from orchestrator.engine.jobs.job import Job
from orchestrator.kinds import kind_named
from tests.cases.runs import audited
from tests.cases.smallest_plans import smallest_plan

APOLLO = kind_named("apollo")


class Fixed:
    """A probe that knows what a job takes."""

    def __init__(self, each: float) -> None:
        self.each = each

    def seconds(self, job: Job) -> float:
        """Return the same for all jobs."""
        return self.each

    def size(self, job: Job) -> int:
        """Return nothing."""
        return 0


def kind(each: float) -> Any:
    """Return a kind whose jobs take ``each`` seconds."""
    return dataclasses.replace(APOLLO, probe=lambda plan, device, timings: Fixed(each))


def jobs(count: int) -> list[Job]:
    return [Job("train", f"{number:04x}", (), {}, "plan") for number in range(count)]


def test_small_populations_stay_in_the_calling_process_and_large_ones_do_not() -> None:
    plan: Any = None
    small = choose_workers(kind(0.3), [(plan, jobs(38)), (plan, jobs(38))], "cpu", 2)  # what plans share counts once
    assert small.workers == 0
    assert small.reason == "about 11 s of work, 27 s with 2 workers and their start"
    even = START_SECONDS / (1 - 1 / (2 * EFFICIENCY)) / 0.3
    assert choose_workers(kind(0.3), [(plan, jobs(int(even) - 1))], "cpu", 2).workers == 0
    assert choose_workers(kind(0.3), [(plan, jobs(int(even) + 2))], "cpu", 2).workers == 2
    large = choose_workers(kind(60.0), [(plan, jobs(1000))], "cpu", 2)
    assert large.workers == 2 and large.reason == "over 1 h 00 min of work"  # 17 hours
    assert wall_seconds(0.0, 2) == 0.0


def test_one_cpu_needs_no_ray_and_gpus_and_unknown_work_keep_their_workers() -> None:
    plan: Any = None
    assert choose_workers(kind(60.0), [(plan, jobs(1000))], "cpu", 1).workers == 0
    assert choose_workers(kind(0.0), [(plan, jobs(1))], "cuda", 4).workers == 4

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    unknown = choose_workers(dataclasses.replace(APOLLO, probe=broken), [(plan, jobs(1))], "cpu", 2)
    assert (unknown.workers, unknown.reason) == (2, "the work could not be estimated: ZeroDivisionError")


@pytest.mark.slow
def test_a_small_audit_says_that_it_stays_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("Ray was asked for")

    monkeypatch.setattr("orchestrator.engine.run.crew.connect", refuse)
    monkeypatch.setattr("orchestrator.engine.run.workers.size_workers", lambda *_, **__: 2)
    monkeypatch.setattr(choice, "START_SECONDS", 1e4)  # whatever the machine is busy with
    few = {"audit.attacks": ["single_query", "lira"], "audit.radii": False, "audit.disclosure": False}
    asked = {**few, "compute.workers": "auto", "compute.device": "cpu"}
    audited(smallest_plan("apollo", tmp_path / "store", **asked), tmp_path / "out")
    lines = capsys.readouterr().out.splitlines()
    (said,) = (line for line in lines if line.startswith("in this process, without Ray ("))
    assert said.endswith("with 2 workers and their start; compute.workers: auto)")
    audited(smallest_plan("apollo", tmp_path / "store", **asked), tmp_path / "out")
    assert not any("compute.workers" in line for line in capsys.readouterr().out.splitlines())  # nothing is left

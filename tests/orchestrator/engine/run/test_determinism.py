"""The result of a plan does not depend on workers, nodes, crashes: scores are compared bit for bit."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray import cloudpickle

from actors.jobs import Job, MakePerform, Workers
from orchestrator.cli.main import main
from orchestrator.engine.run.run import Run
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named
from tests.cases.processes import below, kill_all, start, wait_for
from tests.cases.runs import UnshownRun, jobs_of
from tests.orchestrator.engine.run.small_plans import scores, small_plan, trained

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def two_in_turn(jobs: Sequence[Job], make_perform: MakePerform, workers: Workers, **_: Any) -> None:
    """Do jobs as two workers do, each from a pickle and with a memory of its own, the last that are ready first."""
    assert workers.count == 2
    performs = [cloudpickle.loads(cloudpickle.dumps(make_perform))() for _ in range(2)]
    left = {job.key: job for job in jobs}
    while left:
        ready = [job for job in left.values() if not left.keys() & set(job.needs)]
        assert ready
        for number, job in enumerate(reversed(ready)):
            performs[number % 2](job)
            del left[job.key]


@pytest.mark.parametrize("kind", ["tmia", "gnq"])
def test_scores_do_not_depend_on_who_does_which_job(
    reference: Callable[[str], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    alone = reference(kind)
    monkeypatch.setattr("orchestrator.engine.run.run.connect", lambda workers: nullcontext())
    for pool in ("train_population", "run_units"):
        monkeypatch.setattr(f"orchestrator.engine.run.run.{pool}", two_in_turn)
    assert scores(small_plan(kind, tmp_path / "store", workers=2), tmp_path / "out") == alone


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tmia", "gnq"])
def test_scores_do_not_depend_on_the_number_of_workers(
    cluster: Workers, reference: Callable[[str], bytes], tmp_path: Path, kind: str
) -> None:
    """In short: the test above, and those of Ray below (Apollo, two workers) and in ``test_toy.py`` (one worker)."""
    assert scores(small_plan(kind, tmp_path / "store", workers=2), tmp_path / "out") == reference(kind)


@contextmanager
def a_worker_killed(when: Callable[[], bool]) -> Iterator[list[int]]:
    """Kill one of the workers that train as soon as ``when`` says so; yields the list of those that were there."""
    over = threading.Event()
    seen: list[int] = []

    def kill() -> None:
        while not when():
            if over.wait(0.02):
                return
        seen.extend(pid for pid, name in below(os.getpid()).items() if "RayTrainWorker" in name)
        os.kill(seen[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield seen
    finally:
        over.set()
        killer.join()


def test_a_killed_driver_goes_on_with_the_same_command_and_says_what_it_reused(
    cluster: Workers,
    reference: Callable[[str], bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One of the two workers of the second run is killed, too: that costs nothing but time."""
    plan = small_plan("apollo", tmp_path / "store", workers=2)
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan.resolved()))
    command = ("audit", "apollo", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out"), "--force")
    driver = start(*command, cwd=tmp_path)
    try:
        wait_for(lambda: trained(tmp_path) >= 3, driver)
    finally:
        kill_all(driver)
    before = trained(tmp_path)
    kept = before + len(Store(tmp_path / "store").keys("unlearn"))
    models = sum(kind_named("apollo").stage(job.stage).makes == "model" for job in jobs_of(plan))
    assert 3 <= kept < models
    monkeypatch.setattr(Run, "report", UnshownRun.report)
    monkeypatch.setattr(Run, "track", UnshownRun.track)
    with a_worker_killed(when=lambda: trained(tmp_path) >= before + 2) as workers:
        assert main([*command]) == 0
    assert len(workers) == 2
    said = re.search(r"population: (\d+) models, (\d+) reused, (\d+) to train or unlearn", "".join(capfd.readouterr()))
    assert said and tuple(map(int, said.groups())) == (models, kept, models - kept)
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == reference("apollo")

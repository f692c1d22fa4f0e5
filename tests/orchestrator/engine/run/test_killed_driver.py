"""A driver that is killed, and a node that is lost: scores are those of an undisturbed run, bit for bit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from actors.jobs import Workers
from orchestrator.cli.main import main
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.store.claims import Claim
from orchestrator.engine.store.owner import this_process
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, load_plan
from tests.cases.kept import empty_mlflow
from tests.cases.processes import kill_all, start, wait_for
from tests.cases.runs import audited, draw_only, jobs_of
from tests.cases.smallest_plans import smallest_plan
from tests.orchestrator.engine.run.small_plans import scores, small_plan, trained
from tests.orchestrator.engine.run.test_determinism import OTHERS

pytestmark = pytest.mark.cluster

IMPATIENT = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "20",
}
"""Ray's patience with a node that is gone, cut down: by default it takes a minute and a half to go on without it."""
TOY = "tests.orchestrator.toy.kind:KIND"
ORCH = f"""
import sys
from orchestrator.cli.main import main
from orchestrator.kinds import KINDS
KINDS["toy"] = "{TOY}"
sys.exit(main())
"""
"""The command in a process in which the toy kind is registered."""
RUN = f"""
import sys
from pathlib import Path
from orchestrator.kinds import KINDS, load_plan
from tests.cases.runs import audited
KINDS["toy"] = "{TOY}"
audited(load_plan(sys.argv[1]), Path(sys.argv[2]))
"""
"""An audit of the toy kind without a page and without tracking."""
MANY = {"split.targets": 8, "recipe.epochs": 100}
"""Of the toy kind: so many models, and so long ones, that some are left when a driver is killed."""


def test_what_a_killed_driver_had_made_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its group of Ray Train comes no further than half of the models: claims of this process hold the others.

    What goes on has no workers.
    """
    monkeypatch.setitem(KINDS, "toy", TOY)
    plan = killed_plan("toy", tmp_path, 2, {"split.targets": 4})
    file, store = tmp_path / "plan.yaml", Store(tmp_path / "store")
    file.write_text(yaml.safe_dump(plan.resolved()))
    with ExitStack() as held:
        for job in jobs_of(plan, "train")[2:]:
            claim = store.claims.take(job.stage, job.key, this_process())
            assert isinstance(claim, Claim)
            held.enter_context(claim)
        driver = start(str(file), str(tmp_path / "out"), cwd=tmp_path, program=("-c", RUN))
        try:
            wait_for(lambda: len(store.keys("train")) >= 2, driver, seconds=500, pause=0.2)
        finally:
            kill_all(driver)
    assert len(store.keys("train")) == 2 and not (tmp_path / "out" / "result.json").exists()
    again = plan.changed({"compute.workers": 0})
    assert audited(again, tmp_path / "out").document["population"] == {"models": 4, "reused": 2, "trained": 2}
    alone = scores(again.changed({"compute.store": f"{tmp_path}/alone"}), tmp_path / "alone-out")
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == alone


@pytest.mark.long
@pytest.mark.parametrize(("kind", "more"), [("toy", ("--set", "compute.engine=actors")), ("mia", ())])
def test_a_killed_driver_goes_on_with_the_same_command_and_says_what_it_reused(
    cluster: Workers,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    more: tuple[str, ...],
) -> None:
    """The killed one has a Ray Train group; what goes on with the toy kind has actors. In short: the test above."""
    draw_only(monkeypatch)
    monkeypatch.setitem(KINDS, "toy", TOY)
    shutil.copyfile(empty_mlflow(), tmp_path / "runs.db")
    plan = killed_plan(kind, tmp_path, 2, MANY)
    command = plan_command(plan, tmp_path)
    driver = start(*command, cwd=tmp_path, program=("-c", ORCH))
    try:
        wait_for(lambda: trained(tmp_path) >= 2, driver, seconds=500)
    finally:
        kill_all(driver)
    kept, models = trained(tmp_path), len(jobs_of(plan, "train"))
    assert 2 <= kept < models
    assert main([*command, *more]) == 0
    assert reused(capfd.readouterr().out) == (models, kept, models - kept)
    alone = scores(killed_plan(kind, tmp_path / "alone", 0, MANY), tmp_path / "alone" / "out")
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == alone


def killed_plan(kind: str, place: Path, workers: int, of_toy: Mapping[str, object]) -> BasePlan:
    """Return the plan of a kind whose driver is killed; its store and its database of runs are in ``place``.

    ``of_toy``: further changes if it is the toy kind.
    """
    values = {"compute.workers": workers, "tracking.uri": f"sqlite:///{place}/runs.db"}
    if kind != "toy":
        return smallest_plan(kind, place / "store", **values)
    return load_plan(kind_named("toy").default_plan, values={**values, **of_toy, "compute.store": f"{place}/store"})


def plan_command(plan: BasePlan, folder: Path) -> tuple[str, ...]:
    """Return the command that audits a plan, which is left in ``folder``, as is its output."""
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan.resolved()))
    return "audit", plan.kind, str(folder / "plan.yaml"), "--out", str(folder / "out"), "--force"


def reused(said: str) -> tuple[int, ...]:
    """Return how many models a command says that its audit has, are reused, and are to be made."""
    found = re.search(r"population: (\d+) models, (\d+) reused, (\d+) to train", said)
    assert found, said
    return tuple(map(int, found.groups()))


@pytest.mark.long
def test_a_killed_driver_goes_on_and_loses_a_node(reference: Callable[[str], bytes], tmp_path: Path) -> None:
    """The second run is on a cluster of two nodes and loses one of them: that costs nothing but time.

    In short: the test above.

    A worker that dies where no node is lost: ``tests/actors/test_faults.py``.
    """
    plan = small_plan("apollo", tmp_path / "store", workers="auto")  # so few jobs are done in one process
    command = plan_command(plan, tmp_path)
    driver = start(*command, cwd=tmp_path)
    try:
        wait_for(lambda: trained(tmp_path) >= 3, driver)
    finally:
        kill_all(driver)
    kept = trained(tmp_path) + len(Store(tmp_path / "store").keys("unlearn"))
    models = sum(kind_named("apollo").stage(job.stage).makes == "model" for job in jobs_of(plan))
    assert 3 <= kept < models
    root = Path(__file__).resolve().parents[4]
    surroundings = {**os.environ, **IMPATIENT, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "7" * 64}
    surroundings["PYTHONPATH"] = str(root)
    again = [sys.executable, "-m", "tests.orchestrator.engine.run.two_nodes", str(tmp_path), *command]
    run = subprocess.run(again, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "lost").exists()
    assert reused(run.stdout) == (models, kept, models - kept)
    stages = re.findall(r"^(.+): done, (\d+) of (\d+) in ", run.stdout, flags=re.MULTILINE)
    assert len(stages) == 3 and all(done == total for _, done, total in stages)
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == reference("apollo")


@pytest.mark.long
@pytest.mark.parametrize("kind", OTHERS)
def test_scores_do_not_depend_on_the_number_of_workers(
    cluster: Workers, reference: Callable[[str], bytes], tmp_path: Path, kind: str
) -> None:
    """In short: ``test_determinism.py``, and a killed driver with Ray, above."""
    assert scores(small_plan(kind, tmp_path / "store", workers=2), tmp_path / "out") == reference(kind)

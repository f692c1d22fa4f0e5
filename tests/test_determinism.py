"""The result of a plan does not depend on workers, nodes, crashes: scores are compared bit for bit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from processes import below, kill_all, start, wait_for

from orchestrator.console import Terminal
from orchestrator.output_folder import claim_folder
from orchestrator.pipeline import run_audit
from orchestrator.plan import load_plan
from orchestrator.schedule import schedule
from orchestrator.store import Store

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SMALL = ("split.targets=2", "audit.fpr=[0.5]", "recipe.epochs=40", "split.train_size=100", "split.target_pool=200")


def small_plan(store: Path, *overrides: str):
    return load_plan("apollo-smoke", (*SMALL, f"compute.store={store}", *overrides))


def audit(plan, out: Path) -> bytes:
    run_audit(plan, out, Terminal(claim_folder(out, plan)))
    return (out / "scores.parquet").read_bytes()


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> bytes:
    """The scores of the plan, made in one process without Ray."""
    place = tmp_path_factory.mktemp("reference")
    return audit(small_plan(place / "store", "compute.workers=0"), place / "out")


@pytest.mark.parametrize("workers", [1, 2])
def test_scores_do_not_depend_on_the_number_of_workers(reference, tmp_path, workers):
    assert audit(small_plan(tmp_path / "store", f"compute.workers={workers}"), tmp_path / "out") == reference


def command(tmp_path: Path) -> tuple[str, ...]:
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump(small_plan(tmp_path / "store", "compute.workers=2").resolved()))
    return "audit", "apollo", str(plan), "--out", str(tmp_path / "out"), "--force"


def trained(tmp_path: Path) -> int:
    return len(Store(tmp_path / "store").keys("train"))


def test_a_killed_worker_costs_nothing_but_time(reference, tmp_path):
    run = start(*command(tmp_path), cwd=tmp_path)
    try:
        wait_for(lambda: trained(tmp_path) >= 2, run)
        workers = [pid for pid, name in below(run.pid).items() if "RayTrainWorker" in name]
        assert workers
        os.kill(workers[0], signal.SIGKILL)
        output = run.communicate(timeout=240)[0]
    finally:
        kill_all(run)
    assert run.returncode == 0, output
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == reference


def test_a_killed_driver_goes_on_with_the_same_command_and_says_what_it_reused(reference, tmp_path):
    run = start(*command(tmp_path), cwd=tmp_path)
    try:
        wait_for(lambda: trained(tmp_path) >= 3, run)
    finally:
        kill_all(run)
    kept = sum(len(Store(tmp_path / "store").keys(stage)) for stage in ("train", "unlearn"))
    models = len(schedule(small_plan(tmp_path / "store")).models)
    assert 3 <= kept < models
    again = start(*command(tmp_path), cwd=tmp_path)
    try:
        output = again.communicate(timeout=240)[0]
    finally:
        kill_all(again)
    assert again.returncode == 0, output
    said = re.search(r"population: (\d+) models, (\d+) reused, (\d+) to train or unlearn", output)
    assert said and tuple(map(int, said.groups())) == (models, kept, models - kept)
    assert (tmp_path / "out" / "scores.parquet").read_bytes() == reference


def test_three_nodes_and_the_loss_of_one_give_the_same_scores(reference, tmp_path):
    here = Path(__file__).resolve().parent
    surroundings = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "7" * 64, "PYTHONPATH": str(here.parent)}
    command = [sys.executable, str(here / "three_nodes.py"), str(tmp_path)]
    run = subprocess.run(command, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "lost").exists()
    for name in ("whole", "hurt"):
        assert (tmp_path / name / "out" / "scores.parquet").read_bytes() == reference, name

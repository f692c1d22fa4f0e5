"""Modules in the folder where a run is started are imported by no process of Ray."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from orchestrator.kinds import load_plan
from tests.cases.own_components import NETS, SCALING
from tests.cases.planted import ROOT, command, installed, library, plant, run
from tests.cases.smallest_plans import MIA

pytestmark = pytest.mark.cluster
CONNECTED = """
import json, os, signal, sys, time
from actors.cluster import TOKEN, connect
from actors.interrupts import end_as_by_ctrl_c, exit_code
from actors.jobs import Workers
from tests.cases.processes import below

class Worker:
    def path(self):
        import multiprocessing, numpy, pandas, pyarrow, torch
        context = multiprocessing.get_context("spawn")  # which starts python -c
        process = context.Process(target=os.getpid)
        process.start()
        process.join()
        return sys.path, process.exitcode

if __name__ == "__main__":
    end_as_by_ctrl_c()
    try:
        with connect(Workers(1, storage=sys.argv[1])):
            import ray
            worker = ray.remote(Worker).remote()
            path, code = ray.get(worker.path.remote())
            print(json.dumps([path, code, TOKEN, list(below(os.getpid()).values())]))
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
    except KeyboardInterrupt:
        print("in order", flush=True)
        os._exit(exit_code())
"""
SECRETS = {"AWS_SECRET_ACCESS_KEY": "marked-key", "MLFLOW_TRACKING_PASSWORD": "marked-word", "A_TOKEN": "marked-token"}


def plan_file(folder: Path, **values: object) -> str:
    """Write the smallest membership audit as a file of ``folder``, and return its name."""
    plan = load_plan("mia-smoke", values=MIA).resolved()
    (folder / "plan.yaml").write_text(yaml.safe_dump({**plan, **values}))
    return "plan.yaml"


def below_uv_run(folder: Path) -> list[str]:
    """Return the start of a command line in ``folder`` that Ray takes for that of ``uv run``; a shell runs the rest."""
    (folder / "run").write_text('"$@"\nexit $?\n')
    (folder.parent / "uv").symlink_to("/bin/sh")
    return [str(folder.parent / "uv"), "run"]


def test_workers_do_not_see_the_working_folder_no_command_line_shows_a_secret_and_the_driver_ends_in_order(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "theirs"
    imported = plant(folder)
    library(folder, "libcuda.so.1")
    (tmp_path / "connected.py").write_text(CONNECTED)
    words = [*below_uv_run(folder), sys.executable, str(tmp_path / "connected.py"), str(tmp_path / "ray")]
    done = run(words, folder, **SECRETS)
    said, *end = done.stdout.splitlines()
    assert (end, done.returncode) == (["in order"], 143), done.stderr
    path, code, token, lines = json.loads(said)
    assert str(folder) not in path and str(ROOT) in path and code == 0
    assert all(map(os.path.isabs, path)), path
    assert not imported.exists(), imported.read_text()
    assert any("raylet" in line for line in lines) and any("ray::" in line for line in lines)
    assert not [line for line in lines if any(secret in line for secret in (token, *SECRETS.values()))]


@pytest.mark.long
def test_an_audit_imports_nothing_of_a_folder_that_is_somebody_elses(tmp_path: Path) -> None:
    """In short: the test above, and ``tests/orchestrator/cli/test_working_folder.py`` of the command itself."""
    folder = tmp_path / "theirs"
    imported = plant(folder)
    words = ["audit", "mia", plan_file(folder), "--workers", "2", "--store", "../store", "--out", "../out"]
    done = run([*command(tmp_path), *words], folder)
    assert done.returncode == 0, done.stderr
    assert not imported.exists(), imported.read_text()


@pytest.mark.long
def test_code_that_was_allowed_is_found_and_takes_no_other_modules_place(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    imported = plant(folder, *installed())
    (folder / "scaling.py").write_text(SCALING)
    (folder / "nets.py").write_text(
        f"{NETS}\nfrom os import getpid\nopen(f'../nets-{{getpid()}}', 'w')\nimport numpy\n"
    )
    plan = plan_file(folder, model={"name": "python:nets:SmallNet", "settings": {"width": 8}})
    words = ["audit", "mia", plan, "--workers", "2", "--store", "../store", "--out", "../out", "--allow-code"]
    done = run([*command(tmp_path), *words], folder)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("nets-*"))) >= 2, "the driver and at least one worker"
    assert not imported.exists(), imported.read_text()

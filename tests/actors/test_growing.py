"""Clusters that grow from nothing, shrink, lose a node and get another one: only what was lost is done again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MARK = "what was seen:"

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own; what Ray prints of its own is left out of what it printed."""
    text = text.replace("MARK", MARK)
    code = f"from pathlib import Path\nfolder = Path({str(folder)!r})\n{text}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=folder)
    said = found.stdout.partition(MARK)[2].strip()
    return subprocess.CompletedProcess(found.args, found.returncode, said, found.stderr)


GROWING = """
import time
from functools import partial
from actors.cluster import connect
from actors.jobs import Workers
from actors.pools import do_jobs
from tests.actors.file_jobs import *
from tests.cases.growing import HEAD_ID, growing_cluster

jobs = [FileJob(f"j{number}", str(folder / "run"), (), "meetCOUNT") for number in range(COUNT)]
kinds = {"gpus": {"resources": {"CPU": 8, "GPU": 2}, "max_workers": 1}}
with growing_cluster(folder / "cluster", kinds, idle_minutes=0.05) as address:
    workers = Workers(100, gpus=SHARE, cpus=0.5, address=address, engine="actors", storage=str(folder / "ray"))
    with connect(workers):
        import ray
        said = []
        begin = ray.nodes()
        settled = {"is_done": partial(is_done, folder / "run"), "tell": said.append}
        do_jobs(jobs, make_perform, workers, on_progress=ignore, **settled)
        print("MARK")
        print("before", len(begin), "head" if begin[0]["NodeID"] == HEAD_ID else "")
        ran = {node for where in nodes(folder / "run").values() for node in where}
        processes = {path.name.split("@")[1] for path in (folder / "run" / "starts").iterdir()}
        print("on the head", HEAD_ID in ran, "nodes", len(ran), "workers", len(processes))
        begin = time.monotonic()
        while sum(node["Alive"] for node in ray.nodes()) > 1 and time.monotonic() < begin + 60:
            time.sleep(0.5)
        print("left", sum(node["Alive"] for node in ray.nodes()))
        print(*said, sep="\\n")
"""


@pytest.mark.long
@pytest.mark.parametrize(("count", "share"), [(2, 1), (10, 0.2)])
def test_workers_come_from_nothing_tile_a_gpu_spare_the_head_and_go(tmp_path: Path, count: int, share: float) -> None:
    """Jobs that wait for each other are done only if ``count`` workers find a place at a time."""
    done = script(GROWING.replace("COUNT", str(count)).replace("SHARE", str(share)), tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "before 1 head"
    assert lines[1] == f"on the head False nodes 1 workers {count}"
    assert lines[2] == "left 1"
    assert lines[3].startswith(f"waiting for workers with 0.5 CPUs, {share:g} GPU: ")


NODES = """
import sys, threading, time
from functools import partial
from ray.cluster_utils import Cluster
from actors.cluster import connect
from actors.jobs import Workers
from actors.pools import do_jobs
from tests.actors.file_jobs import *

memory = {"object_store_memory": 100 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **memory})
added = {node.node_id: node for node in (cluster.add_node(num_cpus=1, **memory) for _ in range(3))}
run = folder / "run"
actions = {7: "hold_once"}
jobs = [FileJob(f"j{number:03}", str(run), (), actions.get(number, "sleep0.5")) for number in range(150)]
lost, fourth = [], []

def change(done, total):
    if done >= 12 and not lost and (run / "held").exists():
        lost.append((run / "held").read_text())
        cluster.remove_node(added[lost[0]], allow_graceful=False)
    if done >= 30 and not fourth:
        fourth.append((cluster.add_node(num_cpus=1, **memory).node_id, time.time()))

said = []
workers = Workers(9, address=cluster.address, engine="actors", storage=str(folder / "ray"))
with connect(workers):
    do_jobs(jobs, make_perform, workers, on_progress=change, is_done=partial(is_done, run), tell=said.append)
where = nodes(run)
twice = {key: places for key, places in where.items() if len(places) > 1}
print("MARK")
print("twice", list(twice), "all on the lost node", all(lost[0] in places for places in twice.values()))
began = [path.stat().st_mtime for path in (run / "starts").iterdir() if path.read_text() == fourth[0][0]]
print("fourth node", bool(began), "within 30 s", bool(began) and min(began) - fourth[0][1] < 30)
healthy = {path.name.split("@")[1] for path in (run / "starts").iterdir() if path.read_text() in set(added) - {lost[0]}}
print("processes on healthy nodes", len(healthy), "done", len(done(run)))
print(*said, sep="\\n")
cluster.shutdown()
"""


@pytest.mark.long
def test_a_lost_node_costs_its_own_jobs_and_a_fourth_one_gets_work(tmp_path: Path) -> None:
    found = script(NODES, tmp_path)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0] == "twice ['j007'] all on the lost node True"
    assert lines[1] == "fourth node True within 30 s True"
    assert lines[2] == "processes on healthy nodes 2 done 150"


HUNG = """
import time
from dataclasses import replace
from functools import partial
from actors.cluster import connect
from actors.jobs import Workers
from actors.pools import do_jobs
from tests.actors.file_jobs import *

run = folder / "run"
jobs = [FileJob(f"j{number}", str(run), (), "stop_once" if number == 1 else "sleep0.1") for number in range(8)]
workers = Workers(2, engine="ENGINE", storage=str(folder / "ray"))
said, begin = [], time.monotonic()
with connect(workers):
    do_jobs(jobs, make_perform, workers, on_progress=ignore, is_done=partial(is_done, run), tell=said.append)
print("MARK")
print(len(done(run)), {key: len(places) for key, places in nodes(run).items() if len(places) > 1})
print(time.monotonic() - begin)
print(*said, sep="\\n")
"""


@pytest.mark.long
@pytest.mark.parametrize("engine", ["actors", "train"])
def test_a_worker_that_hangs_is_killed_and_its_job_done_by_another(tmp_path: Path, engine: str) -> None:
    found = script(HUNG.replace("ENGINE", engine), tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[0] == "8 {'j1': 2}"

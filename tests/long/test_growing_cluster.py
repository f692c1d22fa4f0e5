"""The commands of the README and of cluster.yaml on a cluster that has no GPU node until one is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cases.growing import HEAD_ID, growing_cluster

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "split.targets": 2,
    "split.train_size": 300,
    "split.target_pool": 600,
    "split.candidates": {"forget": 12, "unseen": 20},
    "split.shadows": 4,
    "recipe.epochs": 2,
    "audit.fpr": [0.5],
}
"""Makes the default plan of ``apollo-ablation`` small; of ``compute`` it says nothing."""
COMMANDS = {
    "README": ("apollo-smoke",),
    "cluster.yaml": ("apollo-smoke", "--set", "compute.workers=2", "--set", "compute.gpus_per_worker=1"),
    "the default plan": tuple(
        word for field, value in SMALL.items() for word in ("--set", f"{field}={json.dumps(value)}")
    ),
}
"""What is added to ``orch sweep apollo-ablation --set compute.address=…``."""


def orch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run orch from the sources."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "orchestrator.cli.main", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


ALIVE = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False)
print("nodes", *[node["NodeID"] for node in ray.nodes() if node["Alive"]])
print("all", *[node["NodeID"] for node in ray.nodes()])
"""


def nodes(address: str, what: str) -> list[str]:
    """Return the ids of the nodes that are alive ("nodes"), or that ever were ("all")."""
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    command = [sys.executable, "-c", ALIVE, address]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return next(line.split()[1:] for line in found.splitlines() if line.startswith(what))


class Watch:
    """Looks twice a second where workers run: below the head's raylet or below another one's."""

    def __init__(self) -> None:
        self.head: set[int] = set()
        self.elsewhere: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            for entry in Path("/proc").iterdir():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    if not entry.name.isdigit() or b"ServingActor" not in (entry / "cmdline").read_bytes():
                        continue
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    raylet = Path("/proc", parent, "cmdline").read_bytes()
                    if b"grow" in raylet:  # the folder of a growing cluster
                        (self.head if b"--head" in raylet else self.elsewhere).add(int(entry.name))


@pytest.mark.parametrize("version", [1, 2])  # of Ray's autoscaler
@pytest.mark.parametrize("command", list(COMMANDS))
def test_the_command_brings_nodes_trains_nothing_on_the_head_and_ends_with_the_bits_of_one_machine(
    tmp_path: Path, command: str, version: int
) -> None:
    plan = ("sweep", "apollo-ablation", *COMMANDS[command])
    kinds = {"gpu_worker": {"resources": {"CPU": 1, "GPU": 1}, "max_workers": 2}}
    with growing_cluster(tmp_path / "cluster", kinds, idle_minutes=0.5, version=version) as address:
        watch = Watch()
        places = ("--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"))
        done = orch(tmp_path, *plan, "--set", f"compute.address={address}", *places)
        watch.close()
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(nodes(address, "all")) > 2, done.stdout  # the head, and each of two workers on a node of its own
        begin = time.monotonic()
        while (left := nodes(address, "nodes")) != [HEAD_ID] and time.monotonic() < begin + 120:
            time.sleep(2)
        assert left == [HEAD_ID]
        before = nodes(address, "all")
        again = orch(tmp_path, *plan, "--set", f"compute.address={address}", *places, "--force")
        assert again.returncode == 0, again.stdout + again.stderr
        assert ", 0 to train" in again.stdout
        assert nodes(address, "all") == before  # nothing to do: no node is brought to say so
    assert watch.elsewhere
    assert not watch.head
    alone = ("--workers", "0", "--store", str(tmp_path / "store alone"), "--out", str(tmp_path / "alone"))
    assert orch(tmp_path, *plan, *alone).returncode == 0
    assert (tmp_path / "out/scores.parquet").read_bytes() == (tmp_path / "alone/scores.parquet").read_bytes()

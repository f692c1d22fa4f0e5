"""``orch`` whose workers note what each job took: CPU seconds, and the most memory that their process has held.

``weighed(NOTES, ARGUMENTS)`` is the command that runs ``orch`` with ARGUMENTS; with ``nodes`` on a cluster of three
nodes of this machine, one of which is lost when the second training is done and others are under way. Pages and
tracking are left out, and a GPU, which the cluster has not, is waited for a few seconds only.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

import orchestrator.engine.run.crew as crew
from actors import first_worker
from orchestrator.cli.main import main as orch
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.run import Run
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from tests.cases.runs import UnshownRun

NOTES = "ORCH_TEST_NOTES"
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
HEADS = 5
LOST = "lost"
"""Ends the name of the file, beside the notes, that holds the id of the lost node."""


@dataclass(frozen=True)
class Note:
    """A job that began or was ``done``: CPU seconds, and the peak of the memory of its process in bytes."""

    stage: str
    key: str
    node: str
    done: bool
    cpu: float
    peak: int


def notes(file: Path) -> list[Note]:
    """Return what was noted."""
    return [Note(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def note(job: Job, done: bool, cpu: float) -> None:
    """Append a line, in one write."""
    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = json.dumps(asdict(Note(job.stage, job.key, node, done, cpu, peak))) + "\n"
    handle = os.open(os.environ[NOTES], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


class WeighedContext(WorkerContext[Any]):
    def perform(self, job: Job) -> None:
        note(job, False, 0.0)
        begin = time.process_time()
        super().perform(job)
        note(job, True, time.process_time() - begin)


class WeighedContexts(OpenContexts):
    def open(self, plan_hash: str, lately: Recent | None = None) -> WorkerContext[Any]:
        context = super().open(plan_hash, lately)
        context.__class__ = WeighedContext
        return context


def with_head() -> Cluster:
    """Return a cluster of a head; Ray gives up after 30 s of waiting for it, which a busy machine may take."""
    for attempt in range(HEADS):
        cluster = Cluster()
        try:
            cluster.add_node(**NODE, include_dashboard=False)
        except Exception:  # Ray raises no other
            cluster.shutdown()
            if attempt == HEADS - 1:
                raise
        else:
            break
    return cluster


def on_three_nodes(file: Path, *arguments: str) -> int:
    """Build the cluster, carry out the command, take everything down; return the command's exit code."""
    first_worker.REACTION_SECONDS = 2.0
    cluster = with_head()
    over = threading.Event()
    try:
        added = {node.node_id: node for node in (cluster.add_node(**NODE) for _ in range(2))}
        cluster.wait_for_nodes()

        def lose_a_node() -> None:
            while not over.wait(0.02):
                trainings = [each for each in notes(file) if each.stage == "train"]
                finished = {each.key for each in trainings if each.done}
                at_work = [each.node for each in trainings if each.node in added and each.key not in finished]
                if len(finished) >= 2 and at_work:
                    cluster.remove_node(added[at_work[0]], allow_graceful=False)
                    file.with_suffix(f".{LOST}").write_text(at_work[0])
                    return

        threading.Thread(target=lose_a_node, daemon=True).start()
        joined = [f"compute.address={cluster.address}", "compute.head=true", "compute.workers=3"]
        return orch([*arguments, *(word for value in joined for word in ("--set", value))])
    finally:
        over.set()
        cluster.shutdown()


def main(where: str, file: str, *arguments: str) -> int:
    """Carry out the command line and return its exit code."""
    os.environ[NOTES] = file
    crew.OpenContexts = WeighedContexts  # type: ignore[attr-defined]
    for unshown in ("report", "watch", "track"):
        setattr(Run, unshown, getattr(UnshownRun, unshown))
    return on_three_nodes(Path(file), *arguments) if where == "nodes" else orch([*arguments])


def weighed(file: Path, *arguments: str, nodes: bool = False) -> list[str]:
    """Return the command."""
    return [sys.executable, "-m", "tests.long.weighed", "nodes" if nodes else "here", str(file), *arguments]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

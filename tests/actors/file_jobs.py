"""Jobs that write small files, and drivers that run them in a process of their own (for tests of actors/)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from actors.cluster import connect
from actors.jobs import MAX_LOSSES, Job, Perform, Workers
from actors.pools import do_jobs


class OddError(Exception):
    """An exception whose constructor does not take the message that it shows, as some libraries have."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"odd {code}: {reason}")


@dataclass(frozen=True)
class FileJob:
    """Writes ``folder/done/key``: its key and the contents of the files that it needs (which must be there)."""

    key: str
    folder: str
    needs: tuple[str, ...] = ()
    action: str = ""


def chain(folder: Path, rows: int = 4, length: int = 3, **actions: str) -> list[FileJob]:
    """Return ``rows`` independent chains of ``length`` jobs, in an order in which no job may simply run first."""
    return [
        FileJob(f"{row}.{step}", str(folder), (f"{row}.{step - 1}",) if step else (), actions.get(f"j{row}_{step}", ""))
        for step in reversed(range(length))
        for row in range(rows)
    ]


def make_perform() -> Perform:
    """Return the callable that does a FileJob."""
    return perform


def perform(job: Job) -> None:
    """Note the start, act as the job says, write its file."""
    assert isinstance(job, FileJob)
    folder = Path(job.folder)
    for name in ("starts", "done", "nodes"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    text = job.key + "".join(f"({(folder / 'done' / need).read_text()})" for need in job.needs)
    first = starts(folder, job.key) == 0
    (folder / "starts" / f"{job.key}@{os.getpid()}@{uuid4().hex}").write_text(node() if on_ray() else "")
    if job.action:
        act(job, folder, first)
    temporary = folder / "done" / f".{job.key}.{uuid4().hex}"
    temporary.write_text(text)
    temporary.rename(folder / "done" / job.key)


def act(job: FileJob, folder: Path, first: bool) -> None:
    """Do what ``job.action`` names."""
    if job.action == "die" or (job.action == "die_once" and first):
        (folder / f"at_death_of_{job.key}").write_text(" ".join(sorted(done(folder))))
        os.kill(os.getpid(), signal.SIGKILL)
    if job.action == "hold_once" and first:
        (folder / "held").write_text(node())
        threading.Event().wait()  # until this process is killed
    if job.action.startswith("sleep"):
        time.sleep(float(job.action.removeprefix("sleep")))
    if job.action.startswith("meet"):
        meet(folder, int(job.action.removeprefix("meet")))
    if job.action == "stop_once" and first:
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1)  # the stop reaches this thread a little later
    if job.action == "odd":
        raise OddError(7, "said the job")
    if job.action == "missing":
        raise FileNotFoundError(2, "No such file or directory", "/data/x.png")


def meet(folder: Path, count: int) -> None:
    """Wait until jobs were begun by ``count`` processes."""
    for _ in range(1200):
        if len({path.name.split("@")[1] for path in (folder / "starts").iterdir()}) >= count:
            return
        time.sleep(0.1)
    raise TimeoutError(f"fewer than {count} workers came")


def on_ray() -> bool:
    """Return whether this process is a worker's."""
    return "ray" in sys.modules and sys.modules["ray"].is_initialized()


def nodes(folder: Path) -> dict[str, list[str]]:
    """Return key → the nodes on which it was begun."""
    found: dict[str, list[str]] = {}
    for path in (folder / "starts").iterdir():
        found.setdefault(path.name.partition("@")[0], []).append(path.read_text())
    return found


def node() -> str:
    """Return the id of this process's node."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def starts(folder: Path, key: str) -> int:
    """Return how often ``key`` was begun."""
    return len(list((folder / "starts").glob(f"{key}@*")))


def done(folder: Path) -> dict[str, str]:
    """Return the finished files: key -> text."""
    return {path.name: path.read_text() for path in (folder / "done").glob("[!.]*")}


def is_done(folder: Path, key: str) -> bool:
    """Return whether the file of ``key`` is whole."""
    return (folder / "done" / key).exists()


def ignore(done: int, total: int) -> None:
    """Show no progress."""


def drive(folder: Path, workers: Workers, on_progress: Callable[[int, int], None], jobs: list[FileJob]) -> None:
    """Do those of ``jobs`` that are missing, as a command that is run again does."""
    missing = [job for job in jobs if not is_done(folder, job.key)]
    folder.mkdir(exist_ok=True)
    (folder / "planned").write_text(" ".join(job.key for job in missing))
    do_jobs(
        missing, make_perform, workers, on_progress=on_progress, is_done=partial(is_done, folder), max_losses=MAX_LOSSES
    )


def main_killed(folder: Path, storage: str) -> None:
    """A driver that is killed while one worker holds a job and the other has finished all that it could, once."""
    first = not (folder / "planned").exists()

    def die(done: int, total: int) -> None:
        if first and done == total - 3 and (folder / "held").exists():
            os.kill(os.getpid(), signal.SIGKILL)

    drive(folder, Workers(2, storage=storage), die, chain(folder, j1_0="hold_once"))


def main_nodes(folder: Path, storage: str) -> None:
    """A driver on a cluster of three nodes, one of which is lost while a job runs on it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 * 2**20})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20) for _ in range(2)]
    by_id = {added.node_id: added for added in nodes}

    def lose_a_node(done: int, total: int) -> None:
        held = folder / "held"
        if held.exists() and (lost := by_id.pop(held.read_text(), None)):
            cluster.remove_node(lost, allow_graceful=False)

    workers = Workers(2, storage=storage, address=cluster.address, engine="actors")
    try:
        with connect(workers):
            drive(folder, workers, lose_a_node, chain(folder, j1_0="hold_once"))
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    {"killed": main_killed, "nodes": main_nodes}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])

"""Runs of one worker each, all at once on one private Ray cluster: when their jobs begin, and what came for them."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from actors.cluster import connect
from actors.jobs import Engine, Job, Perform, Workers
from actors.pools import do_jobs
from actors.reaper import processes

LOOK_SECONDS = 0.05
SETTLE_SECONDS = 1.0
"""Between the beginning of the last job and the look at memory."""
NOT_COUNTED = ("", "IDLE", "DashboardAgent", "RuntimeEnvAgent")
"""Processes that are there without any run: those without a name in Ray, those held ready, the agents of the node."""
GO = "go"


@dataclass(frozen=True)
class Began:
    """Seconds from the common start to the job of each run, processes by their names in Ray, and their memory."""

    seconds: tuple[float, ...]
    processes: dict[str, int]
    bytes: int


@dataclass(frozen=True)
class WaitingJob:
    """A job that notes when it begins in ``folder`` and ends when it may."""

    key: str
    folder: str
    needs: tuple[str, ...] = ()


def make_perform() -> Perform:
    """Return what does a waiting job; like the workers of an audit this one has torch by then."""
    import torch

    torch.set_num_threads(1)
    return perform


def perform(job: Job) -> None:
    """Note the time and wait."""
    assert isinstance(job, WaitingJob)
    folder = Path(job.folder)
    part = folder / f"{job.key}.part"
    part.write_text(repr(time.monotonic()))  # one clock for all processes of a machine
    part.rename(folder / job.key)
    while not (folder / GO).exists():
        time.sleep(LOOK_SECONDS)


def begin_here(engine: Engine, runs: int) -> Began:
    """Begin ``runs`` runs at once on a new cluster of this process; end them when all are at work."""
    with tempfile.TemporaryDirectory(prefix="orch-") as name:
        folder = Path(name)
        all_workers = Workers(runs, engine=engine, storage=str(folder / "r"))
        with connect(all_workers), ThreadPoolExecutor(runs) as threads:
            start = time.monotonic()
            one = replace(all_workers, count=1)
            ended = [threads.submit(run, WaitingJob(f"job-{number}", name), one) for number in range(runs)]
            try:
                wait_for(lambda: len(begun(folder)) == runs, ended)
                time.sleep(SETTLE_SECONDS)
                came = at_work(os.getpid())
                seconds = [float(path.read_text()) - start for path in begun(folder)]
            finally:
                (folder / GO).touch()
            for future in ended:
                future.result()
    names = Counter(title for title, _ in came)
    return Began(tuple(sorted(seconds)), dict(sorted(names.items())), sum(size for _, size in came))


def begun(folder: Path) -> list[Path]:
    """Return the notes of the jobs that have begun."""
    return [path for path in folder.glob("job-*") if not path.suffix]


def run(job: WaitingJob, workers: Workers) -> None:
    """Do one job as a run of its own."""
    do_jobs([job], make_perform, workers, on_progress=lambda done, total: None, is_done=lambda key: False)


def wait_for(condition: Callable[[], bool], ended: list[Future[None]]) -> None:
    """Return when ``condition`` holds; raises what a run raised that ended before."""
    while not condition():
        for future in ended:
            if future.done():
                future.result()
                raise SystemExit("a run ended before its job was allowed to")
        time.sleep(LOOK_SECONDS)


def at_work(pid: int) -> list[tuple[str, int]]:
    """Return (name in Ray, bytes) of the processes of Ray below ``pid`` that came for a run.

    The bytes are the proportional set size (PSS): a page that several processes share counts once in their sum.
    """
    parents = {child: parent for child, (parent, _) in processes().items()}
    titles = {child: title(child) for child in parents if pid in ancestors(child, parents)}
    return [(name, memory(child)) for child, name in titles.items() if name not in NOT_COUNTED]


def ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    """Return the processes above ``pid``, the nearest first."""
    above = []
    while (pid := parents.get(pid, 0)) and pid not in above:
        above.append(pid)
    return above


def title(pid: int) -> str:
    """Return what Ray calls one of its processes (the class of an actor), "" for all other processes."""
    words = read(pid, "cmdline").replace("\0", " ").split()
    if not words or not words[0].startswith("ray::"):
        return ""
    return words[0].removeprefix("ray::").split(".")[0].split(":")[0]


def memory(pid: int) -> int:
    """Return the PSS of a process in bytes, 0 when it is gone."""
    lines = (line.split() for line in read(pid, "smaps_rollup").splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "Pss:"), 0)


def read(pid: int, name: str) -> str:
    """Return a file of a process, "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""

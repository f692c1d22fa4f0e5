"""The price of a job beside its work: jobs that do nothing, on plain actors that pull them from one queue.

    python -m benchmarks.queue                        # 10 000 jobs on 8 workers
    python -m benchmarks.queue --engine train --workers 2

``driver`` is the CPU time of the calling process a job, from start to end; ``wall`` the time a job from the first ones
that were seen done to the last. What limits a large cluster is the queue, which is one process: with workers that do
nothing the wall time a job is what it and they take together on this machine, so jobs may be no shorter than that times
the number of workers before workers wait.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.cluster import connect
from actors.jobs import Job, Perform, Workers
from actors.pools import do_jobs
from benchmarks.record import SCHEMA, add_output_options, described, environment, number, rounded, table, write


@dataclass(frozen=True)
class EmptyJob:
    """A job with a document of about the size of a real one's, and nothing to do."""

    key: str
    document: str
    needs: tuple[str, ...] = ()


def make_perform() -> Perform:
    """Return what does an empty job."""
    return perform


def perform(job: Job) -> None:
    """Do nothing."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--jobs", type=int, default=10_000, help="(default 10 000)")
    parser.add_argument("--workers", type=int, default=8, help="(default 8)")
    parser.add_argument("--engine", choices=("actors", "train"), default="actors", help="(default actors)")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    jobs = [EmptyJob(f"job-{number:06}", "x" * 2000) for number in range(options.jobs)]
    at = environment("cpu", 1)
    begun: list[float] = []
    ended: list[float] = []

    def note(done: int, total: int) -> None:
        if 0 < done < total and not begun:
            begun.extend((time.perf_counter(), done))
        ended[:] = [time.perf_counter()]

    with tempfile.TemporaryDirectory(prefix="orch-") as folder:
        workers = Workers(options.workers, cpus=0.25, engine=options.engine, storage=str(Path(folder) / "r"))
        with connect(workers):
            before, start = time.process_time(), time.perf_counter()
            do_jobs(jobs, make_perform, workers, on_progress=note, is_done=lambda key: False)
            driver, seconds = time.process_time() - before, time.perf_counter() - start
    row = {
        "engine": options.engine,
        "jobs": options.jobs,
        "workers": options.workers,
        "driver_ms": rounded(1e3 * driver / options.jobs),
        "wall_ms": rounded(1e3 * (ended[0] - begun[0]) / (options.jobs - begun[1])),
        "seconds": rounded(seconds),
        "seconds_to_first": rounded(begun[0] - start),
    }
    record = {
        "schema": SCHEMA,
        "section": "queue",
        "command": f"python -m benchmarks.queue --jobs {options.jobs} --workers {options.workers}",
        "environment": at,
        "repeats": 1,
        "load_average_at_end": round(os.getloadavg()[0], 2),
        "rows": [row],
    }
    header = ("engine", "jobs", "workers", "driver, ms a job", "wall, ms a job", "all, s", "to the first, s")
    write(record, f"{described(record)}\n{table(header, [[show(value) for value in row.values()]])}", options)


def show(value: float | str) -> str:
    """Return a cell of the table."""
    return value if isinstance(value, str) else number(value)


if __name__ == "__main__":
    main()

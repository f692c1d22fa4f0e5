"""The two hosts of workers: Ray Train runs against plain actors, each run with one worker, several of them at once.

    python -m benchmarks.hosts                        # one run, and four at once: minutes
    python -m benchmarks.hosts --runs 8 --repeats 1   # the runs of a small cluster on one machine

Both are started as audits start them (``actors.pools.do_jobs``), all at the same moment on one private cluster that is
up, from a process of its own for each measurement; they take turns. A worker imports torch, says when its job begins,
and waits until all are at work: then processes are counted and their memory is added up. Needs /proc.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, get_args

from actors.jobs import Engine
from audits.errors import BadInput
from benchmarks.hosts_runs import Began, begin_here
from benchmarks.record import SCHEMA, add_output_options, described, environment, median, number, table, write

NAMES: dict[Engine, str] = {"train": "Ray Train", "actors": "plain actors"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=4, metavar="N", help="runs at once, beside one alone (default 4)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="(default 3)")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name in ("runs", "repeats"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give 1 or more")
    at = environment("cpu", 1)
    engines: tuple[Engine, ...] = get_args(Engine)
    cases = [(engine, runs) for runs in sorted({1, options.runs}) for engine in engines]
    found: dict[tuple[Engine, int], list[Began]] = {case: [] for case in cases}
    for case in cases * options.repeats:
        try:
            found[case].append(measured(*case))
        except BadInput as error:
            parser.error(str(error))
    record = {
        "schema": SCHEMA,
        "section": "hosts",
        "command": f"python -m benchmarks.hosts --runs {options.runs} --repeats {options.repeats}",
        "environment": at,
        "repeats": options.repeats,
        "load_average_at_end": round(os.getloadavg()[0], 2),
        "rows": [row(*case, repeats) for case, repeats in found.items()],
    }
    write(record, tables(record), options)


def measured(engine: Engine, runs: int) -> Began:
    """Return what ``runs`` runs at once take, begun from a new process, which has imported nothing yet."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(begin_here, engine, runs).result()


def row(engine: Engine, runs: int, repeats: Sequence[Began]) -> dict[str, Any]:
    """Return the medians over repeats."""
    return {
        "engine": engine,
        "runs": runs,
        "first_seconds": median([began.seconds[0] for began in repeats]),
        "median_seconds": median([statistics.median(began.seconds) for began in repeats]),
        "all_seconds": median([began.seconds[-1] for began in repeats]),
        "bytes": int(statistics.median([began.bytes for began in repeats])),
        "processes": int(statistics.median([sum(began.processes.values()) for began in repeats])),
        "processes_by_name": repeats[-1].processes,
    }


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    header = ("host", "runs", "first job, s", "median job, s", "all jobs, s", "memory, MB", "processes", "which")
    rows = [
        (
            NAMES[found["engine"]],
            str(found["runs"]),
            *(number(found[f"{which}_seconds"]) for which in ("first", "median", "all")),
            number(found["bytes"] / 1e6),
            str(found["processes"]),
            ", ".join(f"{count} {name}" for name, count in found["processes_by_name"].items()),
        )
        for found in record["rows"]
    ]
    return f"{described(record)}\n{table(header, rows)}"


if __name__ == "__main__":
    main()

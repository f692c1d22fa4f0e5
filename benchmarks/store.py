"""A store of many artefacts: what a warm run pays to know that all is there, and what a job pays to be done once.

    python -m benchmarks.store                        # about five minutes: 100 000 artefacts on disk and on S3
    python -m benchmarks.store --artefacts 2000       # some seconds

S3 is moto's server in this process: its times are those of a server in Python that looks at all keys for each page of
a listing. Requests count everywhere.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from benchmarks.record import add_output_options, described, environment, median, number, table, write
from orchestrator.engine.store.known import Known
from orchestrator.engine.store.manifest import MANIFEST
from orchestrator.engine.store.once import do_once
from orchestrator.engine.store.owner import this_process
from orchestrator.engine.store.store import Store

STAGE = "train"
PAYLOAD = "weights.safetensors"
BUCKETS = ("full", "empty")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artefacts", type=int, default=100_000, metavar="N")
    parser.add_argument("--jobs", type=int, default=50, metavar="N", help="jobs by which claims are timed")
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    add_output_options(parser)
    options = parser.parse_args()
    record: dict[str, Any] = {
        "schema": "orch.benchmark/1",
        "section": "store",
        "command": f"python -m benchmarks.store --artefacts {options.artefacts} --repeats {options.repeats}",
        "environment": environment("cpu", 1),
        "repeats": options.repeats,
        "places": [],
    }
    keys = [f"{number * 2654435761 % 2**32:08x}{number:024x}" for number in range(options.artefacts)]
    for name, place in (("disk", on_disk), ("S3 (moto)", on_s3)):
        with place(keys) as (full, empty):
            times = {**known_keys(full, keys, options.repeats), **jobs_done(empty, options.jobs, options.repeats)}
            record["places"].append({"place": name, **times})
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


@contextmanager
def on_disk(keys: list[str]) -> Iterator[tuple[str, str]]:
    """A store with an empty manifest and an empty payload for each key, and an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        for key in keys:
            place = Path(folder, "full", STAGE, key[:2], key)
            place.mkdir(parents=True)
            (place / MANIFEST).touch()
            (place / PAYLOAD).touch()
        yield f"{folder}/full", f"{folder}/empty"


@contextmanager
def on_s3(keys: list[str]) -> Iterator[tuple[str, str]]:
    """The same in two buckets."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for bucket in BUCKETS:
            backend.create_bucket(bucket, "us-east-1")
        for key in keys:
            for name in (MANIFEST, PAYLOAD):
                backend.put_object(BUCKETS[0], f"store/{STAGE}/{key[:2]}/{key}/{name}", b"")
        host, port = server.get_host_and_port()
        options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        full, empty = (f"s3://key:secret@{bucket}/store?{options}" for bucket in BUCKETS)
        yield full, empty
    finally:
        server.stop()


def known_keys(uri: str, keys: list[str], repeats: int) -> dict[str, float]:
    """Return the median seconds that it takes to know ``keys`` by listing and by the index, and to publish that."""
    times: dict[str, list[float]] = {"listed": [], "published": [], "indexed": []}
    for _ in range(repeats):
        Store(uri).unindex(STAGE)
        known = Known(Store(uri), [STAGE])
        times["listed"].append(seconds(partial(require, known, keys)))
        times["published"].append(seconds(known.publish))
        times["indexed"].append(seconds(partial(require, Known(Store(uri), [STAGE]), keys)))
    return {name: median(values) for name, values in times.items()}


def jobs_done(uri: str, jobs: int, repeats: int) -> dict[str, float]:
    """Return the median seconds of a job that puts a small artefact, without and with a claim."""
    times: dict[str, list[float]] = {"put": [], "claimed": []}
    for repeat in range(repeats):
        store, made = Store(uri), [f"{repeat:08x}{job:024x}" for job in range(jobs)]
        times["put"].append(seconds(partial(put_all, store, made)) / jobs)
        times["claimed"].append(seconds(partial(do_all, store, made)) / jobs)
    return {name: median(values) for name, values in times.items()}


def seconds(work: Callable[[], None]) -> float:
    """Return what ``work`` takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def require(known: Known, keys: list[str]) -> None:
    """Ask for every key, as a warm run does."""
    stage = known.stages[STAGE]
    if not all(key in stage for key in keys):
        raise SystemExit("a key that is there was not found")


def put_all(store: Store, keys: list[str]) -> None:
    """Store small artefacts."""
    for key in keys:
        put(store, "plain", key)


def do_all(store: Store, keys: list[str]) -> None:
    """Do jobs that store small artefacts, as a worker does: claimed, and given back."""
    owner = this_process()
    for key in keys:
        do_once(store, "once", key, owner, partial(put, store, "once", key))


def put(store: Store, stage: str, key: str) -> None:
    """Store a small artefact."""
    store.put(stage, key, {}, {"a.json": b"1"})


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    header = (
        "store",
        "all keys, by listing, s",
        "all keys, by the index, s",
        "index written, s",
        "a small put, ms",
        "claim, put and release, ms",
    )
    rows = [
        (
            row["place"],
            number(row["listed"]),
            number(row["indexed"]),
            number(row["published"]),
            number(1000 * row["put"]),
            number(1000 * row["claimed"]),
        )
        for row in record["places"]
    ]
    return f"{described(record)}\n{table(header, rows)}"


if __name__ == "__main__":
    main()

"""Checkpoints of a training: what it takes to write one, to read one, and to ask at every step whether one is due.

python -m benchmarks.checkpoints                  # about a minute
python -m benchmarks.checkpoints --quick          # shows that it works; the numbers mean nothing
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.training.fit import fit
from audits.training.keeper import NEVER, Keeper, Snapshot
from audits.training.recipe import Recipe
from benchmarks.record import SCHEMA, add_output_options, described, environment, median, number, table, write
from orchestrator.engine.store.checkpoints import JobKeeper
from orchestrator.engine.store.store import Store

SHAPE, CLASSES, BATCH = (3, 32, 32), 10, 64
MINUTES = 10.0
"""The default of ``compute.checkpoint_minutes``."""
OPTIMIZERS = ("sgd", "adamw")
KEY = "0" * 32


class Timed(JobKeeper):
    """A keeper for which a snapshot is due behind every second step, and which times its writing and asking."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, "train", KEY, MINUTES)
        self.steps = 0
        self.asking: list[float] = []
        self.writing: list[float] = []

    def due(self) -> bool:
        self.steps += 1
        begin = time.perf_counter()
        super().due()
        self.asking.append(time.perf_counter() - begin)
        return self.steps % 2 == 0

    def save(self, snapshot: Snapshot) -> None:
        begin = time.perf_counter()
        super().save(snapshot)
        self.writing.append(time.perf_counter() - begin)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    says = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints", description=says)
    parser.add_argument("--width", type=int, default=64, help="of ResNet-18 (default 64)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="checkpoints that are written (default 5)")
    parser.add_argument("--quick", action="store_true", help="a narrow network, one checkpoint: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name in ("width", "repeats"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give 1 or more")
    if options.quick:
        options.width, options.repeats = 8, 1
    torch.set_num_threads(1)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "checkpoints",
        "section": "checkpoints",
        "command": " ".join(["python -m benchmarks.checkpoints", *deciding_options(options, parser)]),
        "environment": environment("cpu", 1),
        "repeats": options.repeats,
        "optimizers": [measured(name, options.width, options.repeats) for name in OPTIMIZERS],
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def deciding_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    if options.quick:
        return ["--quick"]
    changed = [name for name in ("width", "repeats") if getattr(options, name) != parser.get_default(name)]
    return [word for name in changed for word in (f"--{name}", str(getattr(options, name)))]


def measured(optimizer: str, width: int, repeats: int) -> dict[str, Any]:
    """Return the seconds of a step, of writing, reading and asking, and the bytes of a file, by one optimiser."""
    generator = torch.Generator().manual_seed(0)
    points = 2 * repeats * BATCH
    data = TensorSet(
        torch.rand(points, *SHAPE, generator=generator), torch.randint(CLASSES, (points,), generator=generator)
    )
    recipe = Recipe(optimizer=optimizer, learning_rate=1e-3, epochs=1, batch_size=BATCH)  # type: ignore[arg-type]  # one of OPTIMIZERS

    def train(keeper: Keeper) -> float:
        model = make_model("resnet18", {"width": width}).build(SHAPE, CLASSES, 0)
        return seconds(lambda: fit(model, data, recipe, seed=0, keeper=keeper))

    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        keeper = Timed(store)
        train(keeper)
        reading = [seconds(JobKeeper(store, "train", KEY, MINUTES).last) for _ in range(repeats)]
        (file,) = (path for path in Path(folder).rglob("*.safetensors"))
        size = file.stat().st_size
    return {
        "optimizer": optimizer,
        "step": train(NEVER) / (2 * repeats),
        "bytes": size,
        "writing": median(keeper.writing),
        "reading": median(reading),
        "asking": median(keeper.asking),
    }


def seconds(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    header = [
        "optimiser",
        "a file, MB",
        "written, s",
        "read, s",
        "share of 10 minutes",
        "asking, of a step",
    ]
    rows = [
        [
            row["optimizer"],
            number(row["bytes"] / 1e6),
            number(row["writing"]),
            number(row["reading"]),
            f"{row['writing'] / (60 * MINUTES):.2%}",
            f"{row['asking'] / row['step']:.5%}",
        ]
        for row in record["optimizers"]
    ]
    return described(record) + "\n" + table(header, rows)


if __name__ == "__main__":
    main()

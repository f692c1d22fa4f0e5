"""How fast recipes learn: the paper's of Apollo against the published fast one of ``apollo-cifar10-fast``, per epoch.

python -m benchmarks.recipes                      # about two minutes on one thread
python -m benchmarks.recipes --quick              # shows that it works; the numbers mean nothing

A narrow ResNet-18 learns Fashion-MNIST brought to 14×14 (``fashion14``) by both recipes, with equal points, seeds and
epochs; the rate of the fast one falls to zero within those epochs. With --longer the paper's recipe, which has no
schedule, goes on and shows when it gets as far.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy import stats

from audits.data.catalogue import load
from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.training.fit import fit
from audits.training.loop import EpochReport, accuracy
from audits.training.recipe import Recipe
from benchmarks.record import SCHEMA, add_output_options, described, environment, rounded, table, write
from orchestrator.kinds import load_plan

PAPER, FAST = "apollo-cifar10", "apollo-cifar10-fast"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    says = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=says)
    parser.add_argument("--points", type=int, default=2000, metavar="N", help="a model trains on (default 2000)")
    parser.add_argument("--epochs", type=int, default=8, metavar="N", help="of both recipes (default 8)")
    parser.add_argument("--longer", type=int, default=1, metavar="N", help="times as many of the paper's (default 1)")
    parser.add_argument("--seeds", type=int, default=4, metavar="N", help="models of each recipe (default 4)")
    parser.add_argument("--quick", action="store_true", help="a hundred points, two seeds: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name, least in (("points", 1), ("epochs", 1), ("longer", 1), ("seeds", 2)):
        if getattr(options, name) < least:
            parser.error(f"--{name} {getattr(options, name)}: give {least} or more")
    if options.quick:
        options.points, options.epochs, options.longer, options.seeds = 100, 1, 2, 2
    torch.set_num_threads(1)
    said = " --quick" if options.quick else f" --points {options.points} --epochs {options.epochs}"
    if not options.quick:
        said += f" --longer {options.longer} --seeds {options.seeds}"
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "recipes",
        "section": "recipes",
        "command": f"python -m benchmarks.recipes{said}",
        "environment": environment("cpu", 1),
        "repeats": options.seeds,
        "epochs": options.epochs,
    }
    record |= compared(options.points, options.epochs, options.longer, options.seeds)
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def compared(points: int, epochs: int, longer: int, seeds: int) -> dict[str, Any]:
    """Return accuracies of both recipes at each epoch: means with 95 % intervals over seeds, and paired differences."""
    found: dict[str, list[list[float]]] = {PAPER: [], FAST: []}
    for seed in range(seeds):
        for name, runs in found.items():
            recipe = dataclasses.replace(load_plan(name).recipe, epochs=epochs * (longer if name == PAPER else 1))
            runs.append(accuracies(recipe, points, seed))
    paper, fast = (np.array(found[name]) for name in (PAPER, FAST))
    gain = fast - paper[:, : fast.shape[1]]
    return {
        "rows": [
            {
                "epoch": epoch + 1,
                "paper": interval(paper[:, epoch]),
                "fast": interval(fast[:, epoch]) if epoch < fast.shape[1] else None,
                "gain": interval(gain[:, epoch]) if epoch < fast.shape[1] else None,
            }
            for epoch in range(paper.shape[1])
        ]
    }


def accuracies(recipe: Recipe, points: int, seed: int) -> list[float]:
    """Return the test accuracy of one model behind each epoch."""
    data = load("fashion14", None)
    order = np.random.default_rng(seed).permutation(len(data))
    train, test = (data.tensors(order[part]) for part in (slice(points), slice(points, 2 * points)))
    model = make_model("resnet18", {"stem": "cifar", "width": 8}).build(data.shape, len(data.classes), seed)
    found: list[float] = []

    def look(report: EpochReport) -> None:
        found.append(tested(model, test))

    fit(model, train, recipe, seed=seed, observers=(look,))
    return found


def tested(model: torch.nn.Module, test: TensorSet) -> float:
    """Return the accuracy of a model that is in training."""
    model.eval()
    found = accuracy(model, test)
    model.train()
    return found


def interval(values: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    """Return mean and half the width of the 95 % interval by Student's t over seeds."""
    spread = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return [rounded(float(np.mean(values))), rounded(float(spread))]


def tables(record: Mapping[str, Any]) -> str:
    """Return the table in Markdown."""
    shown = [
        row for row in record["rows"] if row["epoch"] & (row["epoch"] - 1) == 0 or row["epoch"] == record["epochs"]
    ]
    rows = [
        (f"{row['epoch']}", *(f"{row[name][0]:.3f} ± {row[name][1]:.3f}" if row[name] else "" for name in COLUMNS))
        for row in shown
    ]
    header = ("epoch", "the paper's recipe", "the fast one", "difference, paired")
    return f"{described(record)}\n{table(header, rows)}"


COLUMNS = ("paper", "fast", "gain")

if __name__ == "__main__":
    main()

"""The accuracy of recipes by epoch: the paper's of Apollo against the published fast one of ``apollo-cifar10-fast``.

    python -m benchmarks.recipes                      # about two minutes on one thread
    python -m benchmarks.recipes --device cuda --width 64 --points 5000 --test 10000 --epochs 24 --longer 4
    python -m benchmarks.recipes --quick              # shows that it works; the numbers mean nothing

A ResNet-18 learns Fashion-MNIST, brought to 14×14 (``fashion14``) or other images that are here (``--data``), by both
recipes, with equal points, seeds and epochs; the rate of the fast one falls to zero within those epochs. With --longer
the paper's recipe, which has no schedule, goes on and shows when it gets as far. As in runs of the plans, algorithms
are deterministic and products on a GPU are rounded to TF32. Needs all that orch needs: it reads the plans.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from audits.data.catalogue import load
from audits.data.dataset import Dataset
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gpu import settle
from audits.models import make_model
from audits.training.fit import fit
from audits.training.loop import EpochReport, accuracy
from audits.training.recipe import Recipe
from benchmarks.record import SCHEMA, add_output_options, described, environment, number, rounded, table, write
from orchestrator.kinds import load_plan

PAPER, FAST = "apollo-cifar10", "apollo-cifar10-fast"


@dataclass(frozen=True)
class Case:
    """What both recipes learn: ``points`` images of ``data``, by a ResNet-18 of ``width``; ``test`` others test it."""

    data: Dataset
    points: int
    test: int
    width: int
    device: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    says = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=says)
    parser.add_argument("--data", default="fashion14", metavar="NAME", help="images (default fashion14)")
    parser.add_argument("--points", type=int, default=2000, metavar="N", help="a model trains on (default 2000)")
    parser.add_argument("--test", type=int, metavar="N", help="others that it is tested on (default: as many)")
    parser.add_argument("--width", type=int, default=8, metavar="N", help="of the ResNet-18 (default 8; the plans: 64)")
    parser.add_argument("--epochs", type=int, default=8, metavar="N", help="of both recipes (default 8)")
    parser.add_argument("--longer", type=int, default=1, metavar="N", help="times as many of the paper's (default 1)")
    parser.add_argument("--seeds", type=int, default=4, metavar="N", help="models of each recipe (default 4)")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    parser.add_argument("--quick", action="store_true", help="a hundred points, two seeds: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if options.quick:
        options.points, options.test, options.epochs, options.longer, options.seeds = 100, 100, 1, 2, 2
    options.test = options.points if options.test is None else options.test
    for name, least in (("points", 1), ("test", 1), ("width", 1), ("epochs", 1), ("longer", 1), ("seeds", 2)):
        if getattr(options, name) < least:
            parser.error(f"--{name} {getattr(options, name)}: give {least} or more")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: torch finds no GPU here; use --device cpu")
    try:
        data = load(options.data)
    except BadInput as error:
        parser.error(f"--data {options.data}: {error}")
    if options.points + options.test > len(data):
        parser.error(f"--points {options.points} --test {options.test}: {options.data} has {len(data)} in all")
    torch.set_num_threads(1)
    settle(tf32=True)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "recipes",
        "section": "recipes" if options.device == "cpu" else f"recipes {options.data} {options.device.split(':')[0]}",
        "command": f"python -m benchmarks.recipes{said(parser, options)}",
        "environment": environment(options.device, 1),
        "repeats": options.seeds,
        "epochs": options.epochs,
    }
    case = Case(data, options.points, options.test, options.width, options.device)
    record |= compared(case, options.epochs, options.longer, options.seeds)
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def said(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Return the options as they are given: all counts, and what else is not as usual."""
    if options.quick:
        return " --quick"
    counts = ("points", "epochs", "longer", "seeds")
    usual = {name: parser.get_default(name) for name in ("data", "width", "device")} | {"test": options.points}
    others = [name for name, value in usual.items() if getattr(options, name) != value]
    return "".join(f" --{name} {getattr(options, name)}" for name in (*others, *counts))


def compared(case: Case, epochs: int, longer: int, seeds: int) -> dict[str, Any]:
    """Return accuracies of both recipes at each epoch: means with 95 % intervals over seeds, and paired differences.

    ``seconds``: the mean of a whole training of each, tests behind its epochs left out, the first seed's too if there
    are more.
    """
    found: dict[str, list[list[float]]] = {PAPER: [], FAST: []}
    seconds: dict[str, list[float]] = {PAPER: [], FAST: []}
    for seed in range(seeds):
        for name in found:
            recipe = dataclasses.replace(load_plan(name).recipe, epochs=epochs * (longer if name == PAPER else 1))
            learnt, spent = accuracies(case, recipe, seed)
            found[name].append(learnt)
            seconds[name].append(spent)
    paper, fast = (np.array(found[name]) for name in (PAPER, FAST))
    gain = fast - paper[:, : fast.shape[1]]
    last = fast[:, -1] - paper[:, -1]
    return {
        "seconds": {
            name: rounded(float(np.mean(seconds[key][1:]))) for name, key in (("paper", PAPER), ("fast", FAST))
        },
        "last": interval(last),
        "rows": [
            {
                "epoch": epoch + 1,
                "paper": interval(paper[:, epoch]),
                "fast": interval(fast[:, epoch]) if epoch < fast.shape[1] else None,
                "gain": interval(gain[:, epoch]) if epoch < fast.shape[1] else None,
            }
            for epoch in range(paper.shape[1])
        ],
    }


def accuracies(case: Case, recipe: Recipe, seed: int) -> tuple[list[float], float]:
    """Return the test accuracy of one model behind each epoch, and the seconds that it was in training."""
    order = np.random.default_rng(seed).permutation(len(case.data))
    parts = (slice(case.points), slice(case.points, case.points + case.test))
    train, test = (case.data.tensors(order[part], case.device) for part in parts)
    architecture = make_model("resnet18", {"stem": "cifar", "width": case.width})
    model = architecture.build(case.data.shape, len(case.data.classes), seed).to(case.device)
    found: list[float] = []
    looked = 0.0

    def look(report: EpochReport) -> None:
        nonlocal looked
        began = now(case.device)
        found.append(tested(model, test))
        looked += now(case.device) - began

    began = now(case.device)
    fit(model, train, recipe, seed=seed, observers=(look,))
    return found, now(case.device) - began - looked


def now(device: str) -> float:
    """Return the time at which ``device`` has done all that it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter()


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
        row
        for row in record["rows"]
        if row["epoch"] & (row["epoch"] - 1) == 0 or row["epoch"] in (record["epochs"], len(record["rows"]))
    ]
    rows = [
        (f"{row['epoch']}", *(f"{row[name][0]:.3f} ± {row[name][1]:.3f}" if row[name] else "" for name in COLUMNS))
        for row in shown
    ]
    header = ("epoch", "the paper's recipe", "the fast one", "difference, paired")
    mean, half = record["last"]
    paper, fast = (number(record["seconds"][name]) for name in ("paper", "fast"))
    facts = (
        f"A model takes {paper} s by the paper's recipe and {fast} s by the fast one. Difference of the last epochs: "
        f"{mean:.3f} ± {half:.3f}.\n"
    )
    return f"{described(record)}\n{facts}\n{table(header, rows)}"


COLUMNS = ("paper", "fast", "gain")

if __name__ == "__main__":
    main()

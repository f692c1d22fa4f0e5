"""Steps of a training that are recorded once and played again, beside steps that are not: on a GPU.

    python -m benchmarks.recorded             # on a GPU: a minute
    python -m benchmarks.recorded --quick     # shows that it works; the numbers mean nothing

The same training by ``audits.training.fit`` with and without recordings (CUDA graphs), in turns; both must end with the
same bits, else the benchmark stops. Algorithms are deterministic, as in a run; products are rounded to TF32.
Points are random.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import torch

from audits.data.tensors import TensorSet
from audits.gpu import settle
from audits.models import make_model
from audits.seeds import torch_generator
from audits.training import Recipe, backward
from audits.training.fit import fit
from benchmarks.record import SCHEMA, add_output_options, described, environment, median, number, rounded, table, write

CLASSES = 10


@dataclass(frozen=True)
class Case:
    """A training: an architecture, the shape of its points, how many there are, and a recipe."""

    name: str
    model: str
    settings: dict[str, Any]
    shape: tuple[int, ...]
    points: int
    recipe: Recipe


PAPER = Recipe(optimizer="adamw", learning_rate=1e-4, epochs=8, batch_size=64)
FAST = Recipe(
    optimizer="sgd", learning_rate=0.125, epochs=8, batch_size=128, weight_decay=5e-4, schedule="one_cycle",
    label_smoothing=0.1, augment_shift=2, flip=True, dtype="bfloat16",
)  # fmt: skip
"""Those of the plans apollo-cifar10 and apollo-cifar10-fast, but for the number of epochs; so is TF32."""
CASES = (
    Case("mlp", "mlp", {}, (1, 14, 14), 2_000, Recipe(epochs=8)),
    Case("cnn", "cnn", {}, (1, 14, 14), 2_000, Recipe(epochs=8)),
    Case("resnet18, apollo-cifar10", "resnet18", {"stem": "cifar"}, (3, 32, 32), 5_000, PAPER),
    Case("resnet18, apollo-cifar10-fast", "resnet18", {"stem": "cifar"}, (3, 32, 32), 5_000, FAST),
)
REPEATS = 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="narrow networks, few points: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        parser.error("torch finds no GPU here, and nothing is recorded on a CPU")
    torch.set_num_threads(1)
    settle(tf32=True)
    cases = [small(case) for case in CASES] if options.quick else CASES
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "recorded",
        "section": "recorded cuda",
        "command": "python -m benchmarks.recorded" + " --quick" * options.quick,
        "environment": environment("cuda", 1),
        "repeats": REPEATS,
        "cases": [measured(case) for case in cases],
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def small(case: Case) -> Case:
    """Return the same case with few points and a narrow network."""
    narrow = case.settings | ({"width": 8} if case.model == "resnet18" else {})
    return replace(case, settings=narrow, points=256, recipe=replace(case.recipe, epochs=4))


def measured(case: Case) -> dict[str, Any]:
    """Return seconds of an epoch, played and plain; recording is part of the former."""
    seconds: dict[str, list[float]] = {"played": [], "plain": []}
    states: dict[str, dict[str, torch.Tensor]] = {}
    data, kind = points(case), make_model(case.model, case.settings)
    for turn in range(REPEATS + 1):
        for form, found in seconds.items():
            model = kind.build(case.shape, CLASSES, 1).cuda()
            with mock.patch.object(backward, "WARM", backward.WARM if form == "played" else 10**9):
                spent = timed(partial(fit, model, data, case.recipe, seed=2))
            states[form] = model.state_dict()
            if turn:  # the first pays for start-up
                found.append(spent / case.recipe.epochs)
    for name, value in states["plain"].items():
        if not torch.equal(value, states["played"][name]):
            raise SystemExit(f"{case.name}: {name} has other bits where the steps were recorded")
    return {
        "name": case.name,
        "points": case.points,
        "batch_size": case.recipe.batch_size,
        "dtype": case.recipe.dtype,
        "seconds": {form: [rounded(each) for each in found] for form, found in seconds.items()},
    }


def points(case: Case) -> TensorSet:
    """Return random points of the case on the GPU, bytes as images are."""
    generator = torch_generator(0)
    x = torch.randint(256, (case.points, *case.shape), generator=generator, dtype=torch.uint8)
    return TensorSet(x.cuda(), torch.randint(CLASSES, (case.points,), generator=generator).cuda())


def timed(work: Callable[[], object]) -> float:
    """Return the wall seconds of ``work`` until the device is done."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    rows = []
    for case in record["cases"]:
        plain, played = case["seconds"]["plain"], case["seconds"]["played"]
        ratios = sorted(one / other for one, other in zip(plain, played, strict=True))
        rows.append(
            [
                case["name"],
                f"{case['batch_size']}, {case['dtype']}",
                *(number(case["points"] / median(each)) for each in (plain, played)),
                f"**{number(median(ratios))}** ({number(ratios[0])}–{number(ratios[-1])})",
            ]
        )
    header = ["training", "batches", "plain, points a second", "recorded, points a second", "ratio (least–most)"]
    return described(record) + "\n" + table(header, rows)


if __name__ == "__main__":
    main()

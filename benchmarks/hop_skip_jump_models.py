"""HopSkipJump at the size of a run: many models asked about the same points, with shared draws and one by one.

    python -m benchmarks.hop_skip_jump_models                         # mlps on fashion14, 128 points, 10 models
    python -m benchmarks.hop_skip_jump_models --model cnn --models 4

The models are trained for one epoch, each on 1 000 images of its own. *one by one* is ``distances`` for each of them,
*shared draws* is ``distances_of_models``; the two take turns. Before anything is timed both must give the same
distances in float64 (1e-9), else the benchmark stops. *asking alone* is the time that as many labels take in batches of
1024: what a search takes beyond it is its own work.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from audits.data.catalogue import load
from audits.models import MODELS, make_model
from audits.queries.hop_skip_jump import RANK, distances, distances_of_models
from audits.queries.start_points import starts_from_pool
from audits.training.fit import train_model
from audits.training.recipe import Recipe
from benchmarks.record import SCHEMA, add_output_options, described, environment, median, number, table, write

TOLERANCE = 1e-9
"""How far the two forms may differ in float64."""
POOL = 4000
TRAINING = 1000
RECIPE = Recipe(epochs=1, learning_rate=3e-3, batch_size=64)
SEED = 1
MOST = {"models": 40, "points": 4096, "repeats": 100, "threads": 256}
"""What the options may be: models are trained on images of their own, of which fashion14 has enough for 40."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hop_skip_jump_models", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--model", default="mlp", choices=sorted(MODELS), help="their architecture (default mlp)")
    parser.add_argument("--models", type=int, default=10, help="models that are asked (default 10)")
    parser.add_argument("--points", type=int, default=128, help="points that are asked about (default 128)")
    parser.add_argument("--repeats", type=int, default=5, help="turns of both forms (default 5)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
    parser.add_argument("--quick", action="store_true", help="tiny: shows that it works, the numbers mean nothing")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name in MOST:
        if not 1 <= getattr(options, name) <= MOST[name]:
            parser.error(f"--{name} {getattr(options, name)}: give 1 to {MOST[name]}")
    torch.set_num_threads(options.threads)
    models, points, repeats = (2, 3, 1) if options.quick else (options.models, options.points, options.repeats)
    at = environment("cpu", options.threads)
    exact = make_forms(options.model, 2, min(points, 16), torch.float64)
    difference = apart(exact["shared draws"](), exact["one by one"]())
    if not difference <= TOLERANCE:
        raise SystemExit(f"the two forms differ by {difference:.1e} in float64; allowed: {TOLERANCE:.0e}")
    forms = make_forms(options.model, models, points, torch.float32)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "hop_skip_jump_models",
        "section": "hop_skip_jump_models cpu",
        "command": " ".join(["python -m benchmarks.hop_skip_jump_models", *deciding_options(options, parser)]),
        "environment": at,
        "repeats": repeats,
        "model": options.model,
        "models": models,
        "points": points,
        "queries": RANK.queries,
        "largest_difference": difference,
        "milliseconds": timed(forms, models * points, repeats),
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def deciding_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    words = ["--quick"] if options.quick else []
    for name in ("model", *MOST):
        if getattr(options, name) != parser.get_default(name):
            words += [f"--{name}", str(getattr(options, name))]
    return words


def make_forms(model: str, models: int, points: int, dtype: torch.dtype) -> dict[str, Callable[[], torch.Tensor]]:
    """Return the forms that are compared, each ready to be run."""
    dataset = load("fashion14")
    build = partial(make_model(model, {}).build, dataset.shape, len(dataset.classes))
    own = [dataset.tensors(range(TRAINING * seed, TRAINING * (seed + 1))) for seed in range(models)]
    nets = [train_model(build, images, RECIPE, seed).to(dtype) for seed, images in enumerate(own)]
    x, y = dataset.tensors(range(len(dataset) - POOL - points, len(dataset) - POOL)).all()
    pool, known = dataset.tensors(range(len(dataset) - POOL, len(dataset))).all()
    flat, others = x.flatten(1).to(dtype), pool.flatten(1).to(dtype)
    starts = starts_from_pool(flat, y, others, known, RANK.starts)
    labels = [partial(answer, net, dataset.shape) for net in nets]
    given = (flat, y, range(points), starts, RANK, SEED, (0.0, 1.0))
    batch = others[:1024]

    def asking() -> torch.Tensor:
        rows = [min(1024, left) for left in range(points * RANK.queries, 0, -1024)]
        return torch.stack([torch.cat([one(batch[:count]) for count in rows]) for one in labels])

    return {
        "asking alone": asking,
        "one by one": lambda: torch.stack([distances(one, *given).distance for one in labels]),
        "shared draws": lambda: distances_of_models(labels, *given),
    }


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference of two forms' distances; infinite where only one failed, or everything did."""
    known = one.isfinite()
    same = bool(known.any()) and torch.equal(known, other.isfinite())
    return float((one - other)[known].abs().max()) if same else math.inf


@torch.no_grad()
def answer(model: nn.Module, shape: tuple[int, ...], points: torch.Tensor) -> torch.Tensor:
    """Return the labels (N,) of points (N, D)."""
    return model(points.unflatten(1, shape)).argmax(1)


def timed(forms: dict[str, Callable[[], torch.Tensor]], pairs: int, repeats: int) -> dict[str, list[float]]:
    """Return the CPU milliseconds a point and model of every form and repeat; the forms take turns."""
    found: dict[str, list[float]] = {name: [] for name in forms}
    forms["one by one"]()  # the first run pays for start-up
    for turn in range(repeats):
        print(f"repeat {turn + 1} of {repeats}", file=sys.stderr)
        for name, form in forms.items():
            began = time.process_time()
            form()
            found[name].append((time.process_time() - began) / pairs * 1e3)
    return found


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    slow = record["milliseconds"]["one by one"]
    rows = []
    for name, each in record["milliseconds"].items():
        ratios = [one / other for one, other in zip(slow, each, strict=True)]
        rows.append(
            [
                name,
                f"{number(median(each))} ({number(min(each))}–{number(max(each))})",
                f"**{number(median(ratios))}** ({number(min(ratios))}–{number(max(ratios))})",
            ]
        )
    facts = (
        f"fashion14, {record['models']} models ({record['model']}), {record['points']} points, {record['queries']} "
        f"queries each; largest difference between the forms in float64 {record['largest_difference']:.0e}.\n"
    )
    header = ["form", "CPU milliseconds a point and model (least–most)", "one by one / it (least–most)"]
    return described(record) + "\n" + facts + "\n" + table(header, rows)


if __name__ == "__main__":
    main()

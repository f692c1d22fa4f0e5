"""DP-SGD by the fast engine against Opacus and against ordinary training, as ratios within one run.

    python -m benchmarks.private                  # mlp and cnn on 14×14 images, batches of 64; about a minute
    python -m benchmarks.private --quick          # shows that it works; the numbers mean nothing

The three forms take turns, on random images, with the same model and recipe; *plain* draws batches of 64, the private
forms batches of 64 on average. Seconds are CPU time of the process a step, without the start of a training. Before
anything is timed both engines must give the same weights without noise in float64 (1e-6). Needs torch and Opacus only.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.seeds import torch_generator
from audits.training.fit import fit
from audits.training.recipe import Recipe
from benchmarks.record import SCHEMA, add_output_options, described, environment, median, number, table, write

MODELS = ("mlp", "cnn")
SHAPE, CLASSES = (1, 14, 14), 10
BATCH, STEPS, EPOCHS = 64, 16, 4
TOLERANCE = 1e-6
PLAIN = Recipe(learning_rate=1e-3, batch_size=BATCH, epochs=EPOCHS)
FAST = replace(PLAIN, noise_multiplier=1.0, max_grad_norm=1.0)
FORMS = {"plain": PLAIN, "fast": FAST, "opacus": replace(FAST, private_engine="opacus")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.private", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="turns of all forms (default 5)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
    parser.add_argument("--quick", action="store_true", help="one turn of few steps: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name in ("repeats", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give 1 or more")
    torch.set_num_threads(options.threads)
    repeats, steps = (1, 2) if options.quick else (options.repeats, STEPS)
    at = environment("cpu", options.threads)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "private",
        "section": "private cpu",
        "command": " ".join(["python -m benchmarks.private", *deciding_options(options, parser)]),
        "environment": at,
        "repeats": repeats,
        "batch": BATCH,
        "models": {name: measured(name, steps, repeats) for name in MODELS},
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def deciding_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    changed = [name for name in ("repeats", "threads") if getattr(options, name) != parser.get_default(name)]
    return [f"--{name} {getattr(options, name)}" for name in changed] + ["--quick"] * options.quick


def measured(name: str, steps: int, repeats: int) -> dict[str, Any]:
    """Return, for each form, CPU milliseconds a step of every turn, and how far the engines differ."""
    difference = apart(name)
    if not difference <= TOLERANCE:
        raise SystemExit(f"{name}: the two engines differ by {difference:.1e} in float64; allowed: {TOLERANCE:.0e}")
    data = images(BATCH * steps, torch.float32)
    for recipe in FORMS.values():
        timed(built(name), data, recipe, steps)  # whatever is loaded and allocated at first
    found: dict[str, Any] = {form: {"step": []} for form in FORMS}
    for _ in range(repeats):
        for form, recipe in FORMS.items():
            found[form]["step"].append(1000 * timed(built(name), data, recipe, steps))
    return {"difference": difference, "milliseconds": found}


def timed(model: nn.Module, data: TensorSet, recipe: Recipe, steps: int) -> float:
    """Return CPU seconds a step, over all epochs but the first, in which a training also starts."""
    times = [time.process_time()]
    fit(model, data, recipe, seed=0, observers=(lambda report: times.append(time.process_time()),))
    epochs = [end - begin for begin, end in pairwise(times)]
    return sum(epochs[1:]) / (len(epochs) - 1) / steps


def apart(name: str) -> float:
    """Return the largest difference between weights of the two engines after a few steps without noise, in float64."""
    data = images(3 * BATCH, torch.float64)
    found = []
    for form in ("fast", "opacus"):
        recipe = replace(FORMS[form], noise_multiplier=0.0, optimizer="sgd", epochs=2)
        model = fit(built(name).double(), data, recipe, seed=1)
        found.append(torch.cat([weight.detach().flatten() for weight in model.parameters()]))
    return float((found[0] - found[1]).abs().max())


def built(name: str) -> nn.Module:
    """Return the model of default size."""
    return make_model(name, {}).build(SHAPE, CLASSES, 0)


def images(count: int, dtype: torch.dtype) -> TensorSet:
    """Return random images and labels."""
    generator = torch_generator(1)
    x = torch.rand((count, *SHAPE), generator=generator, dtype=torch.float64).to(dtype)
    return TensorSet(x, torch.randint(CLASSES, (count,), generator=generator))


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    rows = []
    for name, model in record["models"].items():
        of = model["milliseconds"]
        for form, found in of.items():
            against = "–" if form == "plain" else ratio(of["opacus"]["step"], found["step"])
            per_plain = ratio(found["step"], of["plain"]["step"])
            rows.append([f"{name}, {form}", number(median(found["step"])), per_plain, against])
    header = ["model, form", "CPU milliseconds a step", "it / plain", "Opacus / it"]
    worst = max(model["difference"] for model in record["models"].values())
    return (
        f"{described(record)}\nBatches of {record['batch']} images of 14×14; largest difference between the engines in "
        f"float64 {worst:.0e}.\n\n{table(header, rows)}"
    )


def ratio(above: Sequence[float], below: Sequence[float]) -> str:
    """Return the median over turns of above/below, with least and most."""
    found = [one / other for one, other in zip(above, below, strict=True)]
    return f"**{number(median(found))}** ({number(min(found))}–{number(max(found))})"


if __name__ == "__main__":
    main()

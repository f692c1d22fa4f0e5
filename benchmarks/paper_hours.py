"""GPU-hours of the plan ``apollo-cifar10``: each kind of model and a walk are timed, and counted as often as it needs.

    python -m benchmarks.paper_hours                # on a GPU: some minutes
    python -m benchmarks.paper_hours --no-tf32      # with products of full precision
    python -m benchmarks.paper_hours --quick        # shows that it works; the numbers mean nothing

As in a run of the plan, algorithms are deterministic and products are rounded to TF32. ResNet-18 is trained on random
images of CIFAR-10's shape by the plan's recipe for a few epochs, whose mean is scaled to all of them; every unlearning
method runs whole; walks and answers are timed over a few shadows and scaled by their number. What the plan needs
(``NEEDED``) is counted by hand here, since the benchmark reads no plan;
``tests/benchmarks/test_gpu.py`` compares it with the plan's jobs. Work of a run that is not on the GPU (starting
workers, the store) is left out. Needs torch and NumPy only.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from audits.apollo.evidence.search import search
from audits.data.tensors import TensorSet
from audits.gpu import settle
from audits.models import make_model
from audits.seeds import torch_generator
from audits.training import Recipe, logits, train_model
from audits.unlearning import make_unlearner
from benchmarks.record import SCHEMA, add_output_options, described, environment, number, rounded, table, write
from benchmarks.search_cases import Case, make_problem

PLAN = "apollo-cifar10"
SHAPE = (3, 32, 32)
CLASSES = 10
POINTS, FORGET = 5_000, 500
MODEL: dict[str, Any] = {"stem": "cifar"}
RECIPE = Recipe(optimizer="adamw", learning_rate=1e-4, epochs=100, batch_size=64)
TF32 = True
METHODS: dict[str, dict[str, Any]] = {
    "gradient_ascent": {
        "learning_rate": 2e-4,
        "epochs": 10,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "clip_norm": 0.1,
    },
    "finetune": {"optimizer": "sgd", "learning_rate": 0.01, "epochs": 10, "schedule": "cosine"},
    "bad_teacher": {
        "optimizer": "sgd",
        "learning_rate": 0.02,
        "epochs": 10,
        "temperature": 1.0,
        "mean_over_classes": True,
    },
    "scrub": {
        "optimizer": "adam",
        "learning_rate": 8e-5,
        "epochs": 6,
        "ascent_epochs": 2,
        "gamma": 0.99,
        "alpha": 0.001,
        "temperature": 4.0,
    },
    "salun": {"optimizer": "sgd", "learning_rate": 0.007, "epochs": 10, "fraction": 0.2},
    "sfr_on": {
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "iterations": 1500,
        "forget_every": 5,
        "ascent_weight": 25.0,
        "loss_power": 0.5,
        "fisher_ratio": 1.0,
        "clip_norm": 7.0,
    },
}
"""The methods that start from a trained model, with the plan's settings."""
NEEDED = {"models": 260, "walked": 46_080_000, "answered": 124_518_400}
"""Models that are trained, unlearned by each method and retrained; images walked through a shadow (forward and back);
images that a shadow or target is asked about."""
WALK = Case("walk", "resnet18", SHAPE, {"width": 64}, shadows=4, candidates=128, steps=4)
EPOCHS = 5
"""Training epochs that are timed, the first apart."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper_hours", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N or cpu")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few points: shows that it works")
    parser.add_argument("--no-tf32", action="store_true", help="round no products to TF32, as the plan does")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: torch finds no GPU here; use --device cpu")
    torch.set_num_threads(1)
    settle(TF32 and not options.no_tf32)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "paper_hours",
        "section": f"paper_hours {options.device.partition(':')[0]}",
        "command": "python -m benchmarks.paper_hours" + " --no-tf32" * options.no_tf32 + " --quick" * options.quick,
        "environment": environment(options.device, 1),
        "repeats": 1,
        "plan": PLAN,
        "needed": NEEDED,
        **measured(options.device, options.quick),
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def measured(device: str, quick: bool) -> dict[str, Any]:
    """Return seconds of each kind of work, one unit of it."""
    data = random_images(64 if quick else POINTS, device)
    forget, retain = parts(data, len(data) * FORGET // POINTS)
    architecture = make_model("resnet18", {**MODEL, **({"width": 8} if quick else {})})

    def build(seed: int) -> nn.Module:
        return architecture.build(SHAPE, CLASSES, seed)

    epoch, trained = trained_epoch(build, data, device, 2 if quick else EPOCHS)
    seconds = {"train": epoch * RECIPE.epochs, "retrain": epoch * RECIPE.epochs * len(retain) / len(data)}
    for name, settings in METHODS.items():
        unlearner = make_unlearner(name, shortened(settings) if quick else settings)
        seconds[name], _ = timed(
            partial(unlearner.unlearn, trained, forget, retain, seed=0, recipe=RECIPE, build=build),
            device,
        )
    return {
        "images_per_second": rounded(len(data) / epoch),
        "seconds": {name: rounded(value) for name, value in seconds.items()},
        "walks_per_second": rounded(walked(device, quick)),
        "answers_per_second": rounded(answered(trained, device, quick)),
    }


def random_images(count: int, device: str) -> TensorSet:
    """Return images of random pixels (uint8) with random labels."""
    generator = torch_generator(0)
    x = torch.randint(256, (count, *SHAPE), generator=generator, dtype=torch.uint8)
    return TensorSet(x.to(device), torch.randint(CLASSES, (count,), generator=generator).to(device))


def parts(data: TensorSet, first: int) -> tuple[TensorSet, TensorSet]:
    """Return the ``first`` points, and the others."""
    return TensorSet(data.x[:first], data.y[:first]), TensorSet(data.x[first:], data.y[first:])


def trained_epoch(
    build: Callable[[int], nn.Module], data: TensorSet, device: str, epochs: int
) -> tuple[float, nn.Module]:
    """Return the mean seconds of an epoch once kernels have been chosen, and the model."""
    plain = {name: getattr(RECIPE, name) for name in ("optimizer", "learning_rate", "batch_size")}
    timed(lambda: train_model(build, data, Recipe(**plain, epochs=1), seed=0), device)
    times = []
    for count in (1, epochs):
        spent, model = timed(partial(train_model, build, data, Recipe(**plain, epochs=count), 0), device)
        times.append(spent)
    return max((times[1] - times[0]) / (epochs - 1), 1e-9), model


def shortened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of one epoch, or of a few iterations."""
    short = {"epochs": 1, "ascent_epochs": 1, "iterations": 5}
    return {name: short.get(name, value) for name, value in settings.items()}


def walked(device: str, quick: bool) -> float:
    """Return how many images a second walk through a shadow: forward, and back to the input."""
    case = WALK if not quick else Case("walk", "resnet18", SHAPE, {"width": 8}, shadows=4, candidates=4, steps=1)
    problem = make_problem(case, device)

    def walk() -> object:
        return search(
            problem.shadows, problem.x, problem.y, problem.start, problem.settings, value_range=problem.value_range
        )

    timed(walk, device)
    spent, _ = timed(walk, device)
    return case.shadows * case.candidates * 2 * case.steps / spent


def answered(model: nn.Module, device: str, quick: bool) -> float:
    """Return how many images a second a model answers."""
    asked = random_images(64 if quick else 10_000, device)
    timed(lambda: logits(model, asked.x), device)
    spent, _ = timed(lambda: logits(model, asked.x), device)
    return len(asked) / spent


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the wall seconds of ``work`` until the device is done, and what it returned."""
    began = time.perf_counter()
    found = work()
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter() - began, found


def hours(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the hours of one device by kind of work."""
    needed = record["needed"]
    found = {name: needed["models"] * seconds / 3600 for name, seconds in record["seconds"].items()}
    found["walks"] = needed["walked"] / record["walks_per_second"] / 3600
    found["answers"] = needed["answered"] / record["answers_per_second"] / 3600
    return found


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    needed, spent = record["needed"], hours(record)
    rows = [
        [name, str(needed["models"]), f"{number(seconds)} s a model", number(spent[name])]
        for name, seconds in record["seconds"].items()
    ]
    for name, count, rate in (("walks", "walked", "walks_per_second"), ("answers", "answered", "answers_per_second")):
        rows.append([name, number(needed[count]), f"{number(record[rate])} images a second", number(spent[name])])
    rows.append(["**all**", "", "", f"**{number(sum(spent.values()))}**"])
    facts = (
        f"`{record['plan']}`: {number(record['images_per_second'])} images a second in training. Hours are of one "
        "device, extrapolated from the speeds beside them.\n"
    )
    return described(record) + "\n" + facts + "\n" + table(["work", "how often", "measured", "hours"], rows)


if __name__ == "__main__":
    main()

"""A population of models: one Ray Train run that serves a queue, one Ray Train run per model, and no Ray at all.

    python -m benchmarks.population                       # 1 and 2 workers, the models of the default plan

Four forms take turns, each into a new store: ``in process`` (one after the other, without Ray), ``population`` with 1
and with 2 workers (what audits use: one Ray Train run, workers pull models from one queue) and ``run per model`` (the
naive way: a ``TorchTrainer`` for every model, on a Ray cluster that is already up). Every form makes populations of two
sizes; the line through the two medians gives the fixed cost (start of Ray, of the workers, of torch in them, and the
end) and the models per minute beyond it. All forms must give the same weights bit for bit, else the benchmark stops.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from actors.cluster import connect
from actors.jobs import Workers
from actors.pools import do_jobs
from audits.errors import BadInput
from benchmarks.record import SCHEMA, add_output_options, described, environment, median, number, rounded, table, write
from orchestrator.apollo.kind import KIND
from orchestrator.engine.data import data_of
from orchestrator.engine.jobs.job import Job, of_stage
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.worker import WEIGHTS, OpenContexts
from orchestrator.engine.store.store import Store
from orchestrator.kinds import load_plan, open_design

Form = Callable[[Sequence[Job], OpenContexts, Workers], float]
"""Trains models into the store of the contexts and returns the seconds that it took."""

LINE = ("fixed_seconds", "seconds_per_model", "models_per_minute", "slowest", "fastest", "whole_plan_seconds")
"""The numbers that come from the line through two sizes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.population", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", nargs=2, type=int, default=(16, 64), metavar=("FEW", "MANY"), help="(default 16 64)")
    parser.add_argument(
        "--workers", nargs="+", type=int, default=(1, 2), help="workers of the population (default 1 2)"
    )
    parser.add_argument(
        "--alone",
        nargs=2,
        type=int,
        default=(0, 4),
        metavar=("FEW", "MANY"),
        help="sizes of the form with a Ray Train run per model; 0 starts and stops Ray only (default 0 4)",
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds of all forms (default 3)")
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="A.B=C", help="change the plan")
    parser.add_argument("--quick", action="store_true", help="one epoch a model: shows that it works, nothing more")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    quick = ["recipe.epochs=1"] if options.quick else []
    try:
        plan = load_plan(None, [*options.overrides, *quick, "compute.device=cpu"])
    except BadInput as error:
        parser.error(str(error))
    jobs = of_stage(open_design(plan).jobs(), "train")
    check(parser, options, len(jobs))
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "population",
        "section": "population cpu",
        "command": " ".join(["python -m benchmarks.population", *deciding_options(parser, options)]),
        "environment": environment("cpu", plan.compute.threads),
        "repeats": options.repeats,
        "plan": {"data": plan.data.name, "model": plan.resolved()["model"], "recipe": plan.resolved()["recipe"]},
        "train_size": plan.split.train_size,
        "models_of_the_plan": len(jobs),
        "forms": measure(plan, jobs, options),
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def check(parser: argparse.ArgumentParser, options: argparse.Namespace, models: int) -> None:
    """End with one line and exit code 2 on options that cannot be carried out."""
    for name, least in (("sizes", 1), ("alone", 0)):
        few, many = getattr(options, name)
        if not least <= few < many <= models:
            parser.error(f"--{name} {few} {many}: give two growing sizes from {least} to {models}, all of the plan")
    if options.repeats < 1 or min(options.workers) < 1:
        parser.error("--repeats and --workers must be 1 or more")


def deciding_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    words = ["--quick"] if options.quick else []
    for name in ("sizes", "workers", "alone"):
        if tuple(getattr(options, name)) != parser.get_default(name):
            words += ["--" + name, *map(str, getattr(options, name))]
    if options.repeats != parser.get_default("repeats"):
        words += ["--repeats", str(options.repeats)]
    for override in options.overrides:
        words += ["--set", override]
    return words


def measure(plan: BasePlan, jobs: Sequence[Job], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one entry per form: seconds of every repeat, the line through their medians, seconds inside a job."""
    forms: dict[str, tuple[Form, Workers, Sequence[int]]] = {"in process": (population, Workers(0), options.sizes)}
    for count in options.workers:
        forms[f"population, {count} worker{'s' * (count > 1)}"] = (population, Workers(count), options.sizes)
    forms["run per model"] = (run_per_model, Workers(1), options.alone)
    seconds: dict[tuple[str, int], list[float]] = {}
    inside: dict[str, list[float]] = {name: [] for name in forms}
    weights: dict[str, bytes] = {}
    timed(population, plan, jobs[:1], Workers(0))  # the first run pays for this process's imports and data
    for turn in range(options.repeats):
        for name, (form, workers, sizes) in forms.items():
            for size in sizes:
                print(f"repeat {turn + 1} of {options.repeats}: {name}, {size} models", file=sys.stderr)
                spent, models = timed(form, plan, jobs[:size], workers)
                seconds.setdefault((name, size), []).append(spent)
                for key, (data, took) in models.items():
                    inside[name].append(took)
                    if weights.setdefault(key, data) != data:
                        raise SystemExit(f"{name}: the weights of model {key} differ from those of the other forms")
    return [
        entry(name, workers.count, {size: seconds[name, size] for size in sizes}, inside[name], len(jobs))
        for name, (_, workers, sizes) in forms.items()
    ]


def timed(
    form: Form, plan: BasePlan, jobs: Sequence[Job], workers: Workers
) -> tuple[float, dict[str, tuple[bytes, float]]]:
    """Return the seconds that ``form`` takes for ``jobs``, and per key the weights and the seconds inside the job."""
    folder = Path(tempfile.mkdtemp(prefix="orch-benchmark-"))  # stays, with the log, when a form fails
    store = Store(str(folder / "store"))
    fingerprint = data_of(plan.data.name, plan.data.root).fingerprint
    contexts = OpenContexts(KIND, {plan.plan_hash: plan.resolved()}, store.uri, "cpu", fingerprint)
    log = folder / "log"
    try:
        with Terminal(log).quiet():
            spent = form(jobs, contexts, replace(workers, storage=str(folder / "ray")))
    except Exception as error:
        error.add_note(f"log: {log}")
        raise
    made = [store.get(job.stage, job.key) for job in jobs]
    found = {artefact.key: (artefact.read(WEIGHTS), artefact.seconds) for artefact in made}
    shutil.rmtree(folder)
    return spent, found


def population(jobs: Sequence[Job], contexts: OpenContexts, workers: Workers) -> float:
    """Train as audits do: one Ray Train run over one queue; with no workers in this process."""
    begin = time.perf_counter()
    do_jobs(jobs, contexts, workers, on_progress=lambda done, total: None, is_done=lambda key: False)
    return time.perf_counter() - begin


def run_per_model(jobs: Sequence[Job], contexts: OpenContexts, workers: Workers) -> float:
    """Train every model with a ``TorchTrainer`` of its own, one after the other, on one cluster."""
    begin = time.perf_counter()
    with connect(workers):
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        for job in jobs:
            TorchTrainer(
                train_one,
                train_loop_config={"contexts": contexts, "job": job},
                scaling_config=ScalingConfig(num_workers=1),
                run_config=RunConfig(storage_path=str(Path(workers.storage).resolve()), name=job.key),
            ).fit()
    return time.perf_counter() - begin


def train_one(config: dict[str, Any]) -> None:
    """Train one model (runs in the worker of a Ray Train run)."""
    config["contexts"]()(config["job"])


def entry(
    name: str, workers: int, seconds: Mapping[int, Sequence[float]], inside: Sequence[float], models: int
) -> dict[str, Any]:
    """Return the numbers of one form; ``whole_plan_seconds`` is the line's value at all ``models`` of the plan.

    The line's numbers are None when any run of the larger population was as fast as one of the smaller: noise then
    decides the slope. ``slowest`` and ``fastest`` are the models per minute that single repeats would give.
    """
    few, many = sorted(seconds)
    found = {
        "name": name,
        "workers": workers,
        "seconds": {str(size): [rounded(value) for value in values] for size, values in seconds.items()},
        "seconds_inside_a_job": median(inside),
    }
    if min(seconds[many]) <= max(seconds[few]):
        return {**found, **dict.fromkeys(LINE)}
    at_few, at_many = statistics.median(seconds[few]), statistics.median(seconds[many])
    per_model = (at_many - at_few) / (many - few)
    fixed = at_few - few * per_model
    rates = [60 * (many - few) / (after - before) for before, after in zip(seconds[few], seconds[many], strict=True)]
    line = (fixed, per_model, 60 / per_model, min(rates), max(rates), fixed + models * per_model)
    return {**found, **dict(zip(LINE, map(rounded, line), strict=True))}


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    forms = {form["name"]: form for form in record["forms"]}
    alone, naive = forms["in process"], forms["run per model"]
    rows = [
        [
            form["name"],
            shown(form["fixed_seconds"]),
            f"{shown(form['models_per_minute'])} ({shown(form['slowest'])}–{shown(form['fastest'])})",
            " / ".join(" ".join(map(number, times)) for times in form["seconds"].values()),
            shown(quotient(form["models_per_minute"], alone["models_per_minute"])),
            shown(quotient(form["models_per_minute"], naive["models_per_minute"])),
            shown(form["seconds_inside_a_job"]),
            shown(form["whole_plan_seconds"]),
        ]
        for form in record["forms"]
    ]
    header = [
        "form",
        "fixed cost, s",
        "models per minute beyond it (least–most)",
        "seconds of every repeat, smaller / larger size",
        "against in process",
        "against a run per model",
        "inside a job, s",
        f"{record['models_of_the_plan']} models, s",
    ]
    return described(record) + "\n" + table(header, rows) + "".join(pays(form, alone) for form in record["forms"])


def pays(form: Mapping[str, Any], alone: Mapping[str, Any]) -> str:
    """Return from how many models on ``form`` is faster than the form ``alone``; nothing if that is not certain.

    It is when its slowest repeat beat the fastest of ``alone``, and it has more than one worker.
    """
    if form["workers"] < 2 or form["seconds_per_model"] is None or alone["seconds_per_model"] is None:
        return ""
    gain = alone["seconds_per_model"] - form["seconds_per_model"]
    if form["slowest"] <= alone["fastest"]:
        return ""
    count = math.ceil(max(0.0, form["fixed_seconds"] - alone["fixed_seconds"]) / gain)
    return f"\n\nFrom {count} models on, faster than in process: {form['name']}."


def quotient(value: float | None, other: float | None) -> float | None:
    """Return value / other, or None when either was not measured."""
    return None if value is None or other is None else value / other


def shown(value: float | None) -> str:
    """Return a number for a reader, or a dash for one that could not be measured."""
    return "–" if value is None else number(value)


if __name__ == "__main__":
    main()

"""HopSkipJump: distances found and CPU time, ours against ART's and foolbox's at equal queries, in one process.

    python -m benchmarks.hop_skip_jump                      # 100 test images of Fashion-MNIST, a cnn; minutes
    python -m benchmarks.hop_skip_jump --schedule rank      # with the small budget that ranking takes

A cnn is trained first. Every search is then asked for the nearest point of another label around the same test images,
all of which the cnn labels rightly; a wrapper around the cnn counts what is asked, start images included. Ours asks
what its schedule says; the peers are given the rounds, and directions in the first round (near their own 100), that
bring them nearest to that number in short runs, and the table says how near they came. Everything else of the peers is
as they come. foolbox (3.3.4) divides the gradients of a batch by the norm of all of them together, so that points in
one batch take shorter steps; hence it is shown one by one as well. From its own noise it refuses a whole batch for one
point without a start, so it is given start images. ART and foolbox come with
``pip install --editable '.[parity]'``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from audits.data.catalogue import load
from audits.data.dataset import Dataset
from audits.errors import BadInput
from audits.models import make_model
from audits.queries.hop_skip_jump import ABSOLUTE, RANK, Schedule
from audits.statistics.intervals import cluster_bootstrap, mean_over_clusters
from audits.training.fit import train_model
from audits.training.loop import accuracy
from audits.training.recipe import Recipe
from benchmarks.hop_skip_jump_peers import Counting, Problem, Search, art, foolbox, matched, ours, spent
from benchmarks.record import SCHEMA, add_output_options, described, environment, number, rounded, table, write

SCHEDULES = {"absolute": ABSOLUTE, "rank": RANK}
TRAINING_PART = 60_000
TRAINING_POINTS = 10_000
POOL = 2_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hop_skip_jump", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--points", type=int, default=100, help="test images (default 100)")
    parser.add_argument("--schedule", choices=list(SCHEDULES), default="absolute", help="the budget (default absolute)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
    parser.add_argument("--quick", action="store_true", help="3 points: shows that it works, the numbers mean nothing")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    if not 1 <= options.points <= 5000 or options.threads < 1:
        parser.error(f"--points {options.points} --threads {options.threads}: give 1 to 5000 points, 1 thread or more")
    missing = [name for name in ("art", "foolbox") if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(
            f"{' and '.join(missing)} cannot be imported; install them: pip install --editable '.[parity]'"
        )
    torch.set_num_threads(options.threads)
    schedule = SCHEDULES[options.schedule]
    at = environment("cpu", options.threads)
    problem, facts = make_problem(data(), 3 if options.quick else options.points)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "hop_skip_jump",
        "section": "hop_skip_jump cpu" + ("" if options.schedule == "absolute" else " rank"),
        "command": " ".join(["python -m benchmarks.hop_skip_jump", *deciding_options(options)]),
        "environment": at,
        "repeats": 1,
        **facts,
        "queries": schedule.queries,
        "searches": compared({**own(problem, schedule), **peers(problem, schedule)}),
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def deciding_options(options: argparse.Namespace) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    words = ["--quick"] if options.quick else []
    for name, usual in (("points", 100), ("schedule", "absolute"), ("threads", 1)):
        if getattr(options, name) != usual:
            words += [f"--{name}", str(getattr(options, name))]
    return words


def data() -> Dataset:
    """Return Fashion-MNIST, or the embedded 14×14 form of it where the files are absent."""
    try:
        return load("fashion-mnist")
    except BadInput as error:
        print(f"{error}; taking fashion14", file=sys.stderr)
        return load("fashion14")


def make_problem(dataset: Dataset, points: int) -> tuple[Problem, dict[str, Any]]:
    """Return the first ``points`` test images that a cnn labels rightly, the pool behind them, and what was trained.

    The pool is of the last test images, which neither the cnn nor the search has seen.
    """
    recipe = Recipe(epochs=4, learning_rate=2e-3, batch_size=128, schedule="cosine")
    train = dataset.tensors(range(TRAINING_POINTS))
    test = dataset.tensors(range(TRAINING_PART, len(dataset)))
    build = partial(make_model("cnn", {}).build, dataset.shape, len(dataset.classes))
    print(f"training a cnn on {TRAINING_POINTS} images of {dataset.name}", file=sys.stderr)
    model = train_model(build, train, recipe, seed=0).requires_grad_(False)
    x, y = test.all()
    right = (model(x[:-POOL]).argmax(1) == y[:-POOL]).nonzero()[:points, 0]
    facts = {
        "data": dataset.name,
        "shape": list(dataset.shape),
        "points": len(right),
        "train_accuracy": rounded(accuracy(model, train)),
        "test_accuracy": rounded(accuracy(model, test)),
    }
    return Problem(Counting(model).eval(), x[right], y[right], x[-POOL:], y[-POOL:]), facts


def own(problem: Problem, schedule: Schedule) -> dict[str, dict[str, Any]]:
    """Return what our search found and took, from images and from noise."""
    found = {}
    for name, noise in (("ours, from images", False), ("ours, from noise", True)):
        print(name, file=sys.stderr)
        search: Callable[[Problem], torch.Tensor] = partial(ours, schedule=schedule, noise=noise)
        spent(problem.first(1), search)  # the first run pays for start-up
        found[name] = spent(problem, search)
    return found


def peers(problem: Problem, schedule: Schedule) -> dict[str, dict[str, Any]]:
    """Return what the peers' searches found and took within about as many queries."""
    forms: dict[str, Search] = {
        "ART, from noise": art,
        "ART, from images": partial(art, starts=schedule.starts),
        "foolbox, from images, all at once": partial(foolbox, starts=schedule.starts, together=True),
        "foolbox, from images, one by one": partial(foolbox, starts=schedule.starts),
    }
    found = {}
    for name, search in forms.items():
        budget = matched(problem.first(8), search, schedule.queries)
        print(f"{name}: {budget}", file=sys.stderr)
        told = {"rounds": budget.rounds, "directions": budget.directions}
        found[name] = {**spent(problem, partial(search, budget=budget)), **told}
    return found


def compared(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the record of every search, each compared with ours from the same kind of start points, point by point."""
    rows = []
    for name, one in found.items():
        distance = one["distance"].numpy()
        row: dict[str, Any] = {"name": name, "found": int(np.isfinite(distance).sum())}
        known = distance[np.isfinite(distance)]
        for key, share in (("median", 0.5), ("p90", 0.9)):
            row[key] = rounded(float(np.quantile(known, share) if len(known) else np.nan))
        row |= {key: rounded(value) for key, value in one.items() if key != "distance"}
        rows.append(row)
        if name.startswith("ours"):
            continue
        mine = found["ours, from images" if "from images" in name else "ours, from noise"]
        row["cpu_ratio"] = rounded(mine["cpu_seconds"] / one["cpu_seconds"])
        logs = np.log(mine["distance"].numpy() / distance)
        logs = logs[np.isfinite(logs)]
        if not len(logs):
            continue
        low, high = np.exp(cluster_bootstrap(mean_over_clusters(logs), len(logs)))
        row["ratio"] = {"mean": rounded(float(np.exp(logs.mean()))), "low": rounded(low), "high": rounded(high)}
        row["ours_nearer"] = rounded(float((logs < 0).mean()))
    return rows


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    rows = []
    for one in record["searches"]:
        ratio = one.get("ratio")
        rows.append(
            [
                one["name"],
                f"{one['rounds']:.0f} / {one['directions']:.0f}" if "rounds" in one else "–",
                f"{one['queries']:.0f} ({one['queries'] / record['queries'] - 1:+.1%})",
                f"{one['found']} of {record['points']}",
                f"{one['median']:.3f} / {one['p90']:.3f}",
                f"**{ratio['mean']:.3f}** ({ratio['low']:.3f}–{ratio['high']:.3f})" if ratio else "–",
                f"{one['ours_nearer']:.0%}" if ratio else "–",
                number(one["cpu_seconds"]),
                number(one["cpu_ratio"]) if "cpu_ratio" in one else "–",
            ]
        )
    header = [
        "search",
        "rounds / directions",
        "queries a point (against ours)",
        "found",
        "median / 90 % quantile of L2",
        "ours / its, geometric mean (95 %)",
        "ours nearer",
        "CPU seconds a point",
        "ours / its",
    ]
    facts = (
        f"{record['data']}, {'×'.join(map(str, record['shape']))}, cnn: accuracy {record['train_accuracy']:.3f} on its "
        f"{TRAINING_POINTS} training images, {record['test_accuracy']:.3f} on test images.\n"
    )
    return described(record) + "\n" + facts + "\n" + table(header, rows)


if __name__ == "__main__":
    main()

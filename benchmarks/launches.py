"""Launches and waits of a GPU: small models one by one and at once, counted on a pretended one.

    python -m benchmarks.launches             # a minute on one thread; counts, which no other work disturbs
    python -m benchmarks.launches --models 8  # fewer models

Nothing is timed: a pretended GPU (``benchmarks/pretended``) computes on the CPU and counts what a real one would be
asked. *one by one* asks, or trains, a model after the other; *at once* is the form that audits take on a GPU for small
models. Before anything is counted both must give the same in float64, else the benchmark stops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn

from audits.apollo.evidence import shadows as shadows_file
from audits.apollo.evidence.search import search
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Shadows
from audits.apollo.evidence.yoqo import STEPS, crafted_chunk
from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.queries.hop_skip_jump import RANK, distances_of_models
from audits.queries.small_budgets import schedule_within, signed_distances
from audits.queries.together import together
from audits.seeds import torch_generator
from audits.training.fit import fit
from audits.training.recipe import Recipe
from audits.training.stacked import fit_stacked
from benchmarks.pretended.counts import Counts
from benchmarks.pretended.cuda import pretended
from benchmarks.record import SCHEMA, add_output_options, environment, number, table, write

SHAPE, CLASSES = (1, 14, 14), 10
TOLERANCE = 1e-8
"""How far the two forms may differ in float64: as far as Adam enlarges rounding."""
SETTINGS = SearchSettings(epsilon=1.0, steps=10, learning_rate=0.1)
BUDGET, EPOCHS = 200, 8
UNIT_RANGE = (0.0, 1.0)


@dataclass(frozen=True)
class Job:
    """Work in two forms, which return what is compared; ``per``: counts are divided by it, ``unit`` says into what."""

    name: str
    one_by_one: Callable[[], torch.Tensor]
    at_once: Callable[[], torch.Tensor]
    unit: str
    per: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Count and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launches", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", type=int, default=16, help="models (default 16)")
    parser.add_argument("--points", type=int, default=64, help="candidates that are asked about (default 64)")
    parser.add_argument("--quick", action="store_true", help="tiny: shows that it works, the numbers mean nothing")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name, most in (("models", 64), ("points", 1024)):
        least = 2 if name == "models" else 1
        if not least <= getattr(options, name) <= most:
            parser.error(f"--{name} {getattr(options, name)}: give {least} to {most}")
    models, points = (4, 4) if options.quick else (options.models, options.points)
    words = [f"--{name} {getattr(options, name)}" for name in ("models", "points") if changed(parser, options, name)]
    with pretended() as counts:
        found = [counted(job, counts) for job in jobs(models, points)]
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "launches",
        "section": "launches",
        "command": " ".join(["python -m benchmarks.launches", *(["--quick"] if options.quick else []), *words]),
        "environment": environment("cpu", 1) | {"device": "pretended GPU"},
        "models": models,
        "points": points,
        "jobs": found,
    }
    write(record, tables(record), options)


def changed(parser: argparse.ArgumentParser, options: argparse.Namespace, name: str) -> bool:
    """Say whether an option is not the default."""
    return bool(getattr(options, name) != parser.get_default(name))


def counted(job: Job, counts: Counts) -> dict[str, Any]:
    """Return the launches and waits of both forms of ``job``."""
    print(job.name, file=sys.stderr)
    found: dict[str, Any] = {"job": job.name, "unit": job.unit}
    results = []
    for name, form in (("one by one", job.one_by_one), ("at once", job.at_once)):
        counts.clear()
        results.append(form())
        found[name] = {"launches": counts.launches.total() / job.per, "waits": counts.syncs.total() / job.per}
    apart = float((results[0] - results[1]).abs().nan_to_num().max())
    if not apart <= TOLERANCE or not torch.equal(results[0].isnan(), results[1].isnan()):
        raise SystemExit(f"{job.name}: the two forms differ by {apart:.1e} in float64; allowed: {TOLERANCE:.0e}")
    return found | {"largest_difference": apart}


def networks(count: int, seed: int) -> list[nn.Module]:
    """Return mlps with random weights on the device."""
    kind = make_model("mlp", {})
    return [kind.build(SHAPE, CLASSES, seed + each).double().cuda().eval() for each in range(count)]


def drawn(count: int, seed: int) -> TensorSet:
    """Return random points on the device."""
    generator = torch_generator(seed)
    x = torch.rand(count, *SHAPE, generator=generator, dtype=torch.float64)
    return TensorSet(x.cuda(), torch.randint(CLASSES, (count,), generator=generator).cuda())


def jobs(models: int, points: int) -> list[Job]:
    """Return all that is counted, for ``models`` models and ``points`` candidates."""
    asked = drawn(points, 1)
    x, y = asked.x.flatten(1), asked.y
    nets, unlearned = ([one.requires_grad_(False) for one in networks(models, seed)] for seed in (0, 100))
    inside = torch.stack([(torch.arange(models) + k) % 2 == 0 for k in range(points)], 1).cuda()
    shadows = Shadows(nets, unlearned, inside, SHAPE)
    start = torch.nn.functional.normalize(drawn(2 * points, 2).x.flatten(1), dim=1).reshape(points, 2, -1)
    starts = drawn(points * RANK.starts, 3).x.reshape(points, RANK.starts, -1)
    rows = torch.arange(points).cuda()

    def searched() -> torch.Tensor:
        return search(shadows, x, y, start, SETTINGS).inputs

    def crafted() -> torch.Tensor:
        return crafted_chunk(shadows.forms(x[:1]).now, rows, x, y, UNIT_RANGE)[0]

    return [
        training(models, points),
        Job("Apollo's search", partial(apart, searched), searched, "job", 1),
        Job(f"YOQO, {STEPS} steps", partial(apart, crafted), crafted, "job", 1),
        boundary(nets, x, y, starts),
        hop_skip_jump(nets, x, y, starts),
    ]


def apart(work: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Do ``work`` with shadows that are never stacked."""
    with mock.patch.object(shadows_file, "stacked", return_value=None):
        return work()


def training(models: int, points: int) -> Job:
    """Return the job of a training, with all that is done before its first step and behind its last one."""
    batch = max(2, points // 8)
    recipe = Recipe(epochs=EPOCHS, batch_size=batch)
    seeds = list(range(models))

    def prepared() -> tuple[list[nn.Module], list[TensorSet]]:
        return networks(models, 0), [drawn(points, 10 + seed) for seed in seeds]

    def weights(found: Sequence[nn.Module]) -> torch.Tensor:
        return torch.stack([torch.cat([each.detach().flatten() for each in one.parameters()]) for one in found]).cpu()

    given = [prepared(), prepared()]  # both forms train in place

    def one_by_one() -> torch.Tensor:
        nets, sets = given[0]
        return weights([fit(one, own, recipe, seed=seed) for one, own, seed in zip(nets, sets, seeds, strict=True)])

    def at_once() -> torch.Tensor:
        return weights(fit_stacked(*given[1], recipe, seeds=seeds))

    return Job("training, mlp, AdamW", one_by_one, at_once, "model-step", models * EPOCHS * -(-points // batch))


def boundary(nets: Sequence[nn.Module], x: torch.Tensor, y: torch.Tensor, starts: torch.Tensor) -> Job:
    """Return the job of boundary distances within a small budget of labels."""
    schedule, models = schedule_within(BUDGET), len(nets)
    begin = starts[:, : schedule.restarts * schedule.starts]

    def walked(labels: Callable[[torch.Tensor], torch.Tensor], copies: int) -> torch.Tensor:
        own = [torch_generator(point) for point in range(len(x))]
        given = (x.repeat(copies, 1), y.repeat(copies), begin.repeat(copies, 1, 1), begin.repeat(copies, 1, 1))
        return signed_distances(labels, *given, own, schedule, UNIT_RANGE)

    def at_once() -> torch.Tensor:
        found = together(nets, SHAPE, x)
        assert found is not None, "mlps are small"
        return walked(found, models).reshape(models, -1).cpu()

    def one_by_one() -> torch.Tensor:
        return torch.stack([walked(partial(labelled, one), 1) for one in nets]).cpu()

    return Job(f"boundary walks, {schedule.queries} labels", one_by_one, at_once, "job", 1)


def hop_skip_jump(nets: Sequence[nn.Module], x: torch.Tensor, y: torch.Tensor, starts: torch.Tensor) -> Job:
    """Return the job of HopSkipJump's distances."""
    given = (x, y, np.arange(len(x)), starts, RANK, 1, UNIT_RANGE)

    def at_once() -> torch.Tensor:
        found = together(nets, SHAPE, x)
        assert found is not None, "mlps are small"
        return distances_of_models(found, *given).cpu()

    def one_by_one() -> torch.Tensor:
        return distances_of_models([partial(labelled, one) for one in nets], *given).cpu()

    return Job(f"HopSkipJump, {RANK.queries} labels", one_by_one, at_once, "job", 1)


def labelled(model: nn.Module, points: torch.Tensor) -> torch.Tensor:
    """Return one model's labels (N,) of flat points (N, D)."""
    found: torch.Tensor = model(points.unflatten(-1, SHAPE)).argmax(1)
    return found


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    rows = []
    for job in record["jobs"]:
        slow, fast = job["one by one"], job["at once"]
        ratio = slow["launches"] / fast["launches"]
        cells = [number(form[name]) for name in ("launches", "waits") for form in (slow, fast)]
        rows.append([f"{job['job']}, a {job['unit']}", *cells[:2], f"**{number(ratio)}**", *cells[2:]])
    facts = (
        f"`{record['command']}`: torch {record['environment']['torch']}, {record['models']} mlps, {record['points']} "
        "points; counts on a pretended GPU.\n"
    )
    header = ["work", "launches one by one", "at once", "one by one / at once", "waits one by one", "at once"]
    return facts + "\n" + table(header, rows)


if __name__ == "__main__":
    main()

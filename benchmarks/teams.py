"""A model of two workers beside that of one: the loss curves of a ResNet-18 in the same batches, and a step's time.

python -m benchmarks.teams                        # some minutes
python -m benchmarks.teams --quick                # shows that it works; the numbers mean nothing

The workers are processes of this machine, one thread each, joined by gloo. In what order a batch's points are summed
changes rounding as well: the curve of one worker whose batches are turned round is the measure for those of two.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from audits.data.catalogue import load
from audits.data.image_files import Seen
from audits.data.tensors import Share, TensorSet, everything
from audits.models import make_model
from audits.training.fit import fit
from audits.training.loop import EpochReport
from audits.training.recipe import Recipe
from audits.training.team import ALONE, Team
from benchmarks.record import SCHEMA, add_output_options, described, environment, number, rounded, table, write
from benchmarks.team_processes import by_team

SIZE = 2
DTYPES = {"float64": torch.float64, "float32": torch.float32}
ONE, TURNED, TWO, APART = "one worker", "one, batches turned round", "two workers", "two, statistics of shares"

Curve = dict[str, Any]
Work = tuple[int, int, int, int]
"""Width of the network, points, epochs, points of a batch."""


class Turned(TensorSet):
    """A training set that gives out the points of each batch in the opposite order."""

    def batches(
        self, parts: Sequence[torch.Tensor], views: Seen | None = None, share: Share = everything
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return super().batches([part.flip(0) for part in parts], views, share)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    says = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teams", description=says)
    parser.add_argument("--width", type=int, default=16, help="of ResNet-18 (default 16)")
    parser.add_argument("--points", type=int, default=512, help="images of fashion14 (default 512)")
    parser.add_argument("--epochs", type=int, default=4, help="of the training (default 4)")
    parser.add_argument("--batch", type=int, default=64, help="points of a batch (default 64)")
    parser.add_argument("--quick", action="store_true", help="few images, a narrow network: shows that it works")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    for name in ("width", "points", "epochs", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: give 1 or more")
    if options.quick:
        options.width, options.points, options.epochs, options.batch = 4, 48, 2, 16
    torch.set_num_threads(1)
    load_average = environment("cpu", 1)
    work = (options.width, options.points, options.epochs, options.batch)
    with tempfile.TemporaryDirectory() as place:
        (together, *_) = by_team(SIZE, Path(place) / "team", both, work)
    alone = {dtype: {ONE: curve(ALONE, dtype, work), TURNED: turned(dtype, work)} for dtype in DTYPES}
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "teams",
        "section": "teams",
        "command": " ".join(["python -m benchmarks.teams", *deciding_options(options, parser)]),
        "environment": load_average,
        "repeats": 1,
        "work": dict(zip(("width", "points", "epochs", "batch"), work, strict=True)),
        "curves": {dtype: alone[dtype] | together[dtype] for dtype in DTYPES},
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def deciding_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    if options.quick:
        return ["--quick"]
    names = ("width", "points", "epochs", "batch")
    changed = [name for name in names if getattr(options, name) != parser.get_default(name)]
    return [word for name in changed for word in (f"--{name}", str(getattr(options, name)))]


def both(team: Team, work: Work) -> dict[str, dict[str, Curve]]:
    """Return the curves of a team, with statistics of whole batches and of shares."""
    apart = replace(team, sync_batch_norm=False)
    return {dtype: {TWO: curve(team, dtype, work), APART: curve(apart, dtype, work)} for dtype in DTYPES}


def turned(dtype: str, work: Work) -> Curve:
    """Return the curve of one worker that sums in another order."""
    return curve(ALONE, dtype, work, Turned)


def curve(
    team: Team,
    dtype: str,
    work: Work,
    made: Callable[[torch.Tensor, torch.Tensor], TensorSet] = TensorSet,
) -> Curve:
    """Return the mean loss of each epoch of a training, and the seconds of a step."""
    width, points, epochs, batch = work
    data = load("fashion14")
    x = torch.from_numpy(np.array(data.inputs[:points])).to(DTYPES[dtype]) / 255
    y = torch.from_numpy(data.labels[:points].copy())
    model = make_model("resnet18", {"width": width}).build(tuple(x.shape[1:]), len(data.classes), 0)
    recipe = Recipe(optimizer="sgd", learning_rate=0.01, epochs=epochs, batch_size=batch)
    losses: list[float] = []

    def note(report: EpochReport) -> None:
        losses.append(report.loss)

    begin = time.perf_counter()
    fit(model.to(DTYPES[dtype]), made(x, y), recipe, seed=0, observers=(note,), team=team)
    return {"losses": losses, "step": rounded((time.perf_counter() - begin) / (epochs * -(-points // batch)))}


def farthest(curves: dict[str, Curve], name: str) -> float:
    """Return the largest relative difference of an epoch's loss from that of one worker."""
    pairs = zip(curves[name]["losses"], curves[ONE]["losses"], strict=True)
    return max(abs(found - alone) / alone for found, alone in pairs)


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    epochs = [f"epoch {epoch}" for epoch in range(1, record["work"]["epochs"] + 1)]
    rows = [
        [
            dtype,
            name,
            *(f"{loss:.6f}" for loss in curves[name]["losses"]),
            "" if name == ONE else f"{farthest(curves, name):.1e}",
            number(1000 * curves[name]["step"]),
        ]
        for dtype, curves in record["curves"].items()
        for name in (ONE, TURNED, TWO, APART)
    ]
    return f"{described(record)}\n{table(['', 'trained by', *epochs, 'farthest from one', 'ms a step'], rows)}"


if __name__ == "__main__":
    main()

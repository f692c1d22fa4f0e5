"""k-means at the size of a run: seconds and peak memory where features are handed over block by block.

    python -m benchmarks.anomalies                  # 60 000 points, 100 blocks of 256 columns, 100 clusters; minutes
    python -m benchmarks.anomalies --features       # also with every iteration on the features: many minutes
    python -m benchmarks.anomalies --device cuda

The features of 60 000 points under 100 reference models, 6 GB, are never held: each block is made anew whenever it is
read, from seeds, as reference models would make it from the points. *sketch* is what audits run (``k_means_streamed``):
k-means in a random projection, then one step on the features. *features* is the plain form from the same kind of start,
the centres of a sample, with all iterations on the features, to be compared with in seconds and in inertia. Each form
runs in a process of its own, whose peak resident memory is printed with Python and torch in it.

Points are relu(z·W) with z of 16 dimensions around centres that overlap; each block has a random W. Every row is
divided by its norm and by the root of the number of blocks, as features are.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch

from audits.seeds import derive_seed, torch_generator
from audits.tmia.anomalies import SAMPLE, Clusters, k_means, k_means_streamed
from benchmarks.record import SCHEMA, add_output_options, described, environment, number, rounded, table, write
from benchmarks.resident import resident_bytes

SEED = 1
LATENT = 16
SPREAD = 0.6
QUICK = {"points": 600, "models": 4, "width": 160, "clusters": 5}


@dataclass
class Blocks:
    """Column blocks (points, width) made from seeds, and a list of when each pass through them began and ended."""

    points: int
    models: int
    width: int
    clusters: int
    device: str
    passes: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        generator = torch_generator(derive_seed(SEED, "points"))
        own = torch.randint(self.clusters, (self.points,), generator=generator)
        centres = torch.randn(self.clusters, LATENT, generator=generator)
        noise = SPREAD * torch.randn(self.points, LATENT, generator=generator)
        self.latent = (centres[own] + noise).to(self.device)

    def block(self, index: int) -> torch.Tensor:
        """Return block ``index``."""
        way = torch.randn(LATENT, self.width, generator=torch_generator(derive_seed(SEED, "block", index)))
        found = (self.latent @ way.to(self.device)).relu_()
        return found.div_(found.norm(dim=1, keepdim=True).clamp_min(1e-12)).div_(math.sqrt(self.models))

    def __iter__(self) -> Iterator[torch.Tensor]:
        this = {"began": self.clock(), "making": 0.0}
        self.passes.append(this)
        for index in range(self.models):
            before = self.clock()
            made = self.block(index)
            this["making"] += self.clock() - before
            this["ended"] = self.clock()
            yield made
            del made  # not held while the next is made
            this["ended"] = self.clock()

    def clock(self) -> float:
        """Return seconds of CPU time of this process, or of wall time once the GPU is done."""
        if not self.device.startswith("cuda"):
            return time.process_time()
        torch.cuda.synchronize(self.device)
        return time.perf_counter()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anomalies", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--points", type=int, default=60_000, help="points that are clustered (default 60000)")
    parser.add_argument("--models", type=int, default=100, help="reference models, one block each (default 100)")
    parser.add_argument("--width", type=int, default=256, help="columns of a block (default 256)")
    parser.add_argument("--clusters", type=int, default=100, help="clusters (default 100)")
    parser.add_argument("--features", action="store_true", help="also the form with every iteration on the features")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
    parser.add_argument("--quick", action="store_true", help="tiny: shows that it works, the numbers mean nothing")
    add_output_options(parser)
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else {name: getattr(options, name) for name in QUICK}
    for name, value in {**sizes, "threads": options.threads}.items():
        if value < 1:
            parser.error(f"--{name} {value}: give 1 or more")
    if not sizes["clusters"] <= min(sizes["points"], SAMPLE):
        parser.error(f"--clusters {sizes['clusters']}: give at most {min(sizes['points'], SAMPLE)}")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: torch finds no GPU here; use --device cpu")
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "benchmark": "anomalies",
        "section": f"anomalies {options.device.split(':')[0]}",
        "command": " ".join(["python -m benchmarks.anomalies", *deciding_options(options, parser)]),
        "environment": environment(options.device, options.threads),
        "repeats": 1,
        **sizes,
        "forms": [
            apart(form, sizes, options.device, options.threads)
            for form in ("sketch", "features")
            if form == "sketch" or options.features
        ],
    }
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def deciding_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options that decide the numbers, as they are written on the command line."""
    words = [f"--{name}" for name in ("features", "quick") if getattr(options, name)]
    for name in (*QUICK, "device", "threads"):
        if getattr(options, name) != parser.get_default(name):
            words += [f"--{name}", str(getattr(options, name))]
    return words


def apart(form: str, sizes: Mapping[str, Any], device: str, threads: int) -> dict[str, Any]:
    """Return ``measured`` of a process of its own; on a GPU, which counts its memory itself, of this one."""
    print(f"k-means, {form}", file=sys.stderr)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        return measured(form, sizes, device, threads)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured, form, sizes, device, threads).result()


def measured(form: str, sizes: Mapping[str, Any], device: str, threads: int) -> dict[str, Any]:
    """Return seconds by phase, peak memory and inertia of one form."""
    torch.set_num_threads(threads)
    blocks = Blocks(**sizes, device=device)
    began = blocks.clock()
    found = FORMS[form](blocks)
    ended = blocks.clock()
    gpu = device.startswith("cuda")
    return {
        "name": form,
        "seconds": rounded(ended - began),
        "making": rounded(sum(one["making"] for one in blocks.passes)),
        "phases": {name: rounded(value) for name, value in phases(form, blocks.passes, began, ended).items()},
        "passes": len(blocks.passes),
        "iterations": found.iterations,
        "inertia": found.inertia,
        "peak_bytes": torch.cuda.max_memory_allocated(device) if gpu else resident_bytes(),
    }


def sketched(blocks: Blocks) -> Clusters:
    """Cluster as audits do."""
    return k_means_streamed(blocks, blocks.clusters, seed=SEED)


def on_features(blocks: Blocks) -> Clusters:
    """Cluster from the centres of a sample's k-means, with every iteration on the features."""
    order = torch.randperm(blocks.points, generator=torch_generator(derive_seed(SEED, "sample")))
    chosen = order[:SAMPLE].sort().values
    sample = torch.cat([block[chosen.to(block.device)] for block in blocks], dim=1)
    start = k_means(sample, blocks.clusters, seed=SEED).centres
    return k_means_streamed(blocks, blocks.clusters, seed=SEED, start=start)


FORMS = {"sketch": sketched, "features": on_features}


def phases(form: str, passes: list[dict[str, float]], began: float, ended: float) -> dict[str, float]:
    """Return the seconds of each phase, the making of blocks included; they add up to the whole."""
    spent = [one["ended"] - one["began"] for one in passes]
    if form == "sketch" and len(passes) == 4:
        _, sketch, step, distances = spent
        parts = {"sketch": sketch, "step on features": step, "distances": distances}
        return {**parts, "k-means in the sketch": ended - began - sum(parts.values())}
    if form == "sketch":  # all columns could be held
        return {"reading": sum(spent), "k-means": ended - began - sum(spent)}
    sample, _, assignment, *iterations, distances = spent
    parts = {"sample": sample, "assignment and iterations": assignment + sum(iterations), "distances": distances}
    return {**parts, "k-means of the sample": ended - began - sum(parts.values())}


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    first = record["forms"][0]
    rows = [
        [
            one["name"],
            f"**{number(one['seconds'])}**",
            number(one["making"]),
            "; ".join(f"{name} {number(value)}" for name, value in one["phases"].items()),
            f"{one['passes']} / {one['iterations']}",
            number(one["peak_bytes"] / 2**20),
            f"{one['inertia'] / first['inertia']:.4f}",
        ]
        for one in record["forms"]
    ]
    clock = "CPU seconds" if record["section"] == "anomalies cpu" else "seconds"
    header = ["form", clock, "of them making blocks", "by phase", "passes / iterations", "peak, MiB", "inertia"]
    facts = (
        f"{record['points']} points, {record['models']} blocks of {record['width']} columns, "
        f"{record['clusters']} clusters; inertia relative to the first row.\n"
    )
    return described(record) + "\n" + facts + "\n" + table(header, rows)


if __name__ == "__main__":
    main()

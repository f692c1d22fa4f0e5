"""Images for a training: shards decoded ahead of it against torchvision's ImageFolder and DataLoader.

    python -m benchmarks.loading                    # about twenty minutes on two CPUs: 20 000 JPEGs of 400×500
    python -m benchmarks.loading --images 400       # a minute

All forms give the same images in random order, each a random crop of 224×224, mirrored by chance, in batches as uint8,
with as many decoding threads or processes as there are CPUs. They take turns, a part of the images each, so that what
else the machine does strikes them alike. ``DataLoader`` is measured with Pillow, its own way, and with torchvision's
decoder, its fastest. The images lie in --cache between runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, read_file
from torchvision.transforms import v2

from audits.data.ahead import ahead, threads
from audits.data.catalogue import encoded
from audits.data.file_sets import EncodedSet
from audits.data.image_files import Images
from audits.data.image_shards import encoded_set
from audits.data.tensors import TensorSet
from audits.data.undecoded import AHEAD, Files, Undecoded
from audits.data.views import Views
from audits.models import make_model
from audits.processors import usable_cpus
from audits.training.backward import Backward
from audits.training.loop import batches, entropy_of, make_optimizer, step
from audits.training.recipe import Recipe
from benchmarks.loading_images import CLASSES, made
from benchmarks.record import add_output_options, described, environment, median, number, rounded, table, write

BATCH = 64
LEAST = 0.08
Form = Callable[[list[int]], Iterator[torch.Tensor]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20_000, metavar="N", help="memory is measured at N/10 too")
    parser.add_argument("--repeats", type=int, default=4, metavar="N", help="turns of each form")
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="training steps in which waiting is timed")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "orch-loading", metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="40 images, brought to 32×32: to see that it works")
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    add_output_options(parser)
    options = parser.parse_args()
    cpus, side = usable_cpus(), 32 if options.quick else 224
    if options.peak:
        print(json.dumps(peak(options.peak)))
        return
    if options.quick:
        options.images, options.repeats, options.steps = 40, 2, 2
    torch.set_num_threads(cpus)
    record: dict[str, Any] = {
        "schema": "orch.benchmark/1",
        "section": "loading cpu",
        "command": "python -m benchmarks.loading"
        + (
            " --quick"
            if options.quick
            else f" --images {options.images} --repeats {options.repeats} --steps {options.steps}"
        ),
        "environment": environment("cpu", cpus),
        "repeats": options.repeats,
        "images": options.images,
    }
    folders = {images: made(options.cache, images, side, cpus) for images in (options.images // 10, options.images)}
    folder, shards = folders[options.images]
    record["forms"] = compared(forms(folder, shards, side, cpus), options.images, options.repeats)
    record["memory"] = [{"images": images, **peak_of(place)} for images, (_, place) in folders.items()]
    record["training"] = trained(encoded_set(shards), options.steps)
    record["load_average_at_end"] = round(os.getloadavg()[0], 2)
    write(record, tables(record), options)


def forms(folder: Path, shards: Path, side: int, cpus: int) -> dict[str, Form]:
    """Return what is compared: by name, a function from ids to batches of uint8 images."""
    pillows = ImageFolder(
        folder,
        transforms.Compose(
            [
                transforms.RandomResizedCrop(side, (LEAST, 1.0)),
                transforms.RandomHorizontalFlip(),
                transforms.PILToTensor(),
            ]
        ),
    )
    torchvisions = ImageFolder(
        folder,
        v2.Compose([v2.RandomResizedCrop(side, (LEAST, 1.0), antialias=True), v2.RandomHorizontalFlip()]),
        loader=decoded,
    )
    packed, files = encoded_set(shards).images, encoded(f"folder:{folder}?size={side}")
    assert files is not None
    found: dict[str, Form] = {
        "shards": lambda ids: ours(packed, ids),
        "files": lambda ids: ours(files.images, ids),
        "DataLoader, Pillow": lambda ids: theirs(pillows, ids, cpus),
    }
    if hasattr(torch.ops.image, "decode_jpeg"):
        found["DataLoader, torchvision's decoder"] = lambda ids: theirs(torchvisions, ids, cpus)
    return found


def decoded(path: str) -> torch.Tensor:
    """Return an image as torchvision's decoder reads it."""
    pixels: torch.Tensor = torch.ops.image.decode_jpeg(read_file(path), ImageReadMode.RGB.value, False)
    return pixels


def ours(images: Images, ids: list[int]) -> Iterator[torch.Tensor]:
    """Yield batches of ``ids`` as a training gets them."""
    points = Files(images, np.array(ids), "cpu")
    views = Views(0, 0, LEAST, True)
    return ahead(lambda rows: points.begin(rows, views), torch.arange(len(ids)).split(BATCH), AHEAD)


def theirs(data: ImageFolder, ids: list[int], cpus: int) -> Iterator[torch.Tensor]:
    """Yield batches of ``ids`` from torchvision's loader."""
    loader = torch.utils.data.DataLoader(torch.utils.data.Subset(data, ids), BATCH, num_workers=cpus)
    return (x for x, _ in loader)


def compared(found: Mapping[str, Form], images: int, repeats: int) -> list[dict[str, Any]]:
    """Return images a second and CPU milliseconds an image of each form, and the ratios to the shards, turn by turn."""
    order = np.random.default_rng(0).permutation(images)
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in found}
    for part in np.array_split(order, repeats):
        for name, form in found.items():
            turns[name].append(timed(form, part.tolist()))
    own = turns["shards"]
    return [
        {
            "form": name,
            "per_second": median([turn["per_second"] for turn in turns[name]]),
            "cpu_ms": median([turn["cpu_ms"] for turn in turns[name]]),
            "ratio": median(
                [ours["per_second"] / turn["per_second"] for ours, turn in zip(own, turns[name], strict=True)]
            ),
            "cpu_ratio": median([turn["cpu_ms"] / ours["cpu_ms"] for ours, turn in zip(own, turns[name], strict=True)]),
        }
        for name in found
    ]


def timed(form: Form, ids: list[int]) -> dict[str, float]:
    """Return the speed of one form on ``ids``, its start included; processes that it started count when they ended."""
    begin, cpu = time.perf_counter(), cpu_seconds()
    seen = 0
    for x in form(ids):
        seen += len(x)
    if seen != len(ids):
        raise SystemExit(f"{seen} images instead of {len(ids)}")
    seconds = time.perf_counter() - begin
    return {"per_second": seen / seconds, "cpu_ms": 1e3 * (cpu_seconds() - cpu) / seen}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it started and that have ended."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in found)


def peak(shards: Path) -> dict[str, float]:
    """Return the most memory that this process has held: before any image, and after an epoch of all of them."""
    data = encoded_set(shards).images
    next(ours(data, list(range(min(BATCH, len(data))))))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in ours(data, np.random.default_rng(0).permutation(len(data)).tolist()):
        pass
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"begin_mb": before / 1024, "peak_mb": after / 1024}


def peak_of(shards: Path) -> dict[str, float]:
    """Return ``peak`` of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.loading", "--peak", str(shards)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {name: rounded(value) for name, value in json.loads(done.stdout).items()}


def trained(data: EncodedSet, steps: int) -> dict[str, float]:
    """Return the seconds of ``steps`` steps of ResNet-18, and those in which it waited for images, the first apart."""
    recipe = Recipe(batch_size=BATCH)
    model = make_model("resnet18", {"stem": "imagenet"}).build(data.images.point_shape, CLASSES, 0).train()
    optimizer = make_optimizer(model, recipe)
    backward = Backward(model, entropy_of(lambda x, _: cast("torch.Tensor", model(x)), recipe))
    ids = np.arange(len(data.labels))
    points = TensorSet(cast("torch.Tensor", Undecoded([Files(data.images, ids, "cpu")])), torch.from_numpy(data.labels))
    parts = batches(len(points), BATCH, torch.Generator().manual_seed(0))[:steps]
    waits, begin = [], time.perf_counter()
    turns = points.batches(parts, Views(0, 0, LEAST, True))
    for _ in parts:
        asked = time.perf_counter()
        x, y = next(turns)
        waits.append(time.perf_counter() - asked)
        step(backward, optimizer, recipe.clip_norm, x, y)
    total = time.perf_counter() - begin
    return {
        "steps": len(parts),
        "seconds": rounded(total),
        "first_wait": rounded(waits[0]),
        "waited": rounded(sum(waits[1:])),
        "share": rounded(sum(waits[1:]) / (total - waits[0])),
        "threads": threads()._max_workers,
    }


def tables(record: Mapping[str, Any]) -> str:
    """Return the tables in Markdown."""
    speed = table(
        ("form", "images a second", "CPU ms an image", "shards are faster by", "less CPU by"),
        [
            (
                row["form"],
                number(row["per_second"]),
                number(row["cpu_ms"]),
                f"{row['ratio']:.2f}",
                f"{row['cpu_ratio']:.2f}",
            )
            for row in record["forms"]
        ],
    )
    memory = table(
        ("images", "MB at the first batch", "MB at most in an epoch"),
        [(f"{row['images']}", number(row["begin_mb"]), number(row["peak_mb"])) for row in record["memory"]],
    )
    found = record["training"]
    training = (
        f"ResNet-18 (224×224, batches of {BATCH}): {found['steps']} steps in {found['seconds']:.3g} s; waited "
        f"{found['first_wait']:.2g} s for the first batch and {found['waited']:.2g} s for all others, "
        f"{100 * found['share']:.2g} % of the time.\n"
    )
    return f"{described(record)}\n{speed}\n\n{memory}\n\n{training}"


if __name__ == "__main__":
    main()

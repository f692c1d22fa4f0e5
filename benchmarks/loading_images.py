"""JPEGs for the benchmark of loading: photographs of nothing, as large as those of ImageNet, made by seed."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from audits.data.catalogue import encoded
from audits.data.sharding import write_image_shards

CLASSES = 10
SIZE = (500, 400)  # width, height


@cache
def grain() -> np.ndarray[Any, Any]:
    """Return noise that makes a JPEG as long as that of a photograph."""
    return np.random.default_rng(0).normal(0, 12, (SIZE[1], SIZE[0], 1)).astype(np.float32)


def write_image(folder: Path, number: int) -> None:
    """Write one image: smooth colours by its number, and grain."""
    rng = np.random.default_rng(number)
    smooth = Image.fromarray(rng.integers(0, 256, (32, 40, 3), dtype=np.uint8)).resize(SIZE, Image.Resampling.BICUBIC)
    pixels = np.asarray(smooth, np.float32) + np.roll(grain(), rng.integers(0, min(SIZE), 2), (0, 1))
    place = folder / f"class{number % CLASSES}"
    place.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(place / f"{number:06d}.jpg", quality=90)


def made(cache_folder: Path, images: int, side: int, cpus: int) -> tuple[Path, Path]:
    """Return a folder of ``images`` and one of their shards, made where they are not there yet."""
    folder, shards = cache_folder / f"images-{images}", cache_folder / f"shards-{images}-{side}"
    whole = folder / "whole"
    if not whole.exists():
        work = partial(write_image, folder)
        if cpus == 1:
            list(map(work, range(images)))
        else:
            with ProcessPoolExecutor(cpus, mp_context=multiprocessing.get_context("spawn")) as pool:
                list(pool.map(work, range(images), chunksize=50))
        whole.touch()
    found = encoded(f"folder:{folder}?size={side}")
    assert found is not None
    write_image_shards(found, shards, workers=cpus)
    return folder, shards

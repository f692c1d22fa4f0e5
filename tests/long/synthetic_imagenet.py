"""Images in the folders of ImageNet that are nobody's photographs: small JPEGs whose colours tell their class."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 1000
SIZE = (64, 48)  # width, height
TONES = 10  # of each of three colours: a class is a mixture of them
NOISE = 40.0  # standard deviation of the patches, in grey levels; tones are 22 apart


def make_imagenet(root: Path, train: int, val: int, workers: int) -> None:
    """Write ``train`` and ``val`` JPEGs of each class below ``root``, as torchvision's ImageNet has them."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(partial(write_class, root, train, val), range(CLASSES), chunksize=10))


def write_class(root: Path, train: int, val: int, label: int) -> None:
    """Write the images of one class, made by its number: the first ones for training."""
    rng = np.random.default_rng(label)
    tone = 28 + 22 * np.array([label % TONES, label // TONES % TONES, label // TONES**2])
    for part, count in (("train", train), ("val", val)):
        folder = root / part / f"n{label:08d}"
        folder.mkdir(parents=True)
        for number in range(count):
            patches = tone + rng.normal(0, NOISE, (6, 8, 3))
            image = Image.fromarray(np.clip(patches, 0, 255).astype(np.uint8)).resize(SIZE, Image.Resampling.BICUBIC)
            image.save(folder / f"{part}_{label:08d}_{number:05d}.JPEG", quality=85)

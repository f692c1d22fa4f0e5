"""Small data sets made on the spot: arrays, and idx files in a folder."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audits.data.catalogue import Dataset


def idx_bytes(array: npt.NDArray[np.uint8]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx_set(folder: Path, *, compress: bool = False) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Write a training part of 6 and a test part of 4 images; return all images and labels in order."""
    folder.mkdir(parents=True)
    images = np.arange(10 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(10, 28, 28)
    labels = np.arange(10, dtype=np.uint8)[::-1].copy()
    for part, rows in (("train", slice(0, 6)), ("t10k", slice(6, 10))):
        for kind, array in (("images-idx3-ubyte", images[rows]), ("labels-idx1-ubyte", labels[rows])):
            content = idx_bytes(array)
            name = f"{part}-{kind}" + (".gz" if compress else "")
            (folder / name).write_bytes(gzip.compress(content) if compress else content)
    return images, labels


def small_dataset(points: int = 10, *, floats: bool = False) -> Dataset:
    random = np.random.default_rng(0)
    labels = np.arange(points, dtype=np.int64) % 3
    if floats:
        return Dataset("small", random.normal(size=(points, 5)).astype(np.float32), labels, ("a", "b", "c"), None)
    images = random.integers(0, 256, (points, 2, 4, 3), dtype=np.uint8)
    return Dataset("small", images, labels, ("a", "b", "c"), (0.0, 1.0))

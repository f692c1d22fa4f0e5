"""Small data sets made on the spot: arrays, idx files, and photographs in the true layouts of their authors."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.io import savemat

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


def photographs(count: int, seed: int) -> list[Image.Image]:
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 32, 36, 3), dtype=np.uint8)
    return [Image.fromarray(each) for each in pixels]


def write_image_folders(folder: Path, classes: int, images: int, seed: int) -> None:
    """Write ``images`` photographs ``image_0001.jpg``, … in each of ``classes`` folders."""
    for label in range(classes):
        place = folder / f"kind{label}"
        place.mkdir(parents=True)
        for number, picture in enumerate(photographs(images, seed + label), start=1):
            picture.save(place / f"image_{number:04d}.jpg")


def write_sets_of_the_tmia_paper(root: Path, images: int = 60) -> None:
    """Write Caltech101, Flowers102, CIFAR-100 and PubFig83 below ``root`` (as ``ORCH_DATA``, and as current folder).

    Each in its true layout, with 2·``images`` photographs of 36×32 or, CIFAR-100, 32×32 pixels: of two classes, or over
    all 102 and 100 in turn.
    """
    write_image_folders(root / "caltech101" / "101_ObjectCategories", 2, images, 1)
    write_image_folders(root / "pubfig83", 2, images, 11)
    flowers = root / "flowers102" / "flowers-102"
    (flowers / "jpg").mkdir(parents=True)
    for number, picture in enumerate(photographs(2 * images, 21), start=1):
        picture.save(flowers / "jpg" / f"image_{number:05d}.jpg")
    ids = np.arange(1, 2 * images + 1)
    savemat(flowers / "imagelabels.mat", {"labels": (1 + ids % 102)[None].astype(np.uint8)})
    savemat(flowers / "setid.mat", {"trnid": ids[None, ::3], "valid": ids[None, 1::3], "tstid": ids[None, 2::3]})
    cifar = root / "cifar100" / "cifar-100-binary"
    cifar.mkdir(parents=True)
    records = np.random.default_rng(31).integers(0, 256, (2 * images, 2 + 3072), dtype=np.uint8)
    records[:, 1] = ids % 100
    (cifar / "train.bin").write_bytes(records[: -images // 2].tobytes())
    (cifar / "test.bin").write_bytes(records[-images // 2 :].tobytes())

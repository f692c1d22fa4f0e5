"""Images that stay in their files: an array of them that decodes only the rows it is asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.errors import BadInput

Shape = tuple[int, int, int]
Decoder = Callable[[Path, Shape], npt.NDArray[Any]]
Rows = slice | Sequence[int] | npt.NDArray[np.integer[Any]]
ENDS = 4096  # bytes of the beginning and of the end of a file that enter the fingerprint
THREADS = 8
IN_FLIGHT = 4096  # items that wait for a thread at a time


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Stands for a uint8 array (N, C, H, W) whose rows are files below ``root``, in the order of ``files``.

    ``decode`` returns one file as uint8 of ``point_shape`` (C, H, W) and must be a function of a module, so that the
    array can be sent to other processes. Rows are decoded when they are asked for, several at a time; nothing is kept.
    """

    root: Path
    files: tuple[str, ...]
    point_shape: Shape
    decode: Decoder

    ndim = 4
    dtype = np.dtype(np.uint8)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""
        return (len(self.files), *self.point_shape)

    @property
    def nbytes(self) -> int:
        """Bytes that all rows would take in memory."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __getitem__(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Return copies of ``rows`` (a slice or indices), in that order, uint8 (rows, C, H, W).

        BadInput names the first file that cannot be decoded.
        """
        chosen = np.arange(len(self.files))[rows]
        images = np.empty((len(chosen), *self.point_shape), dtype=np.uint8)

        def fill(place: int) -> None:
            images[place] = self.decode(self.root / self.files[chosen[place]], self.point_shape)

        for _ in in_threads(fill, range(len(chosen))):
            pass
        return images


def in_threads(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield ``work(item)`` in order, worked out by a few threads; Pillow and hashlib let them run side by side."""
    if len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1, len(items))) as pool:
        for start in range(0, len(items), IN_FLIGHT):
            yield from pool.map(work, items[start : start + IN_FLIGHT])


def files_fingerprint(files: ImageFiles, labels: npt.NDArray[np.int64], classes: Iterable[str], rule: str) -> str:
    """Return the sha256 (hex) of what decides the decoded images, without decoding them.

    That is, of every file: its name below ``root``, its label, its length, and its first and last 4 KiB; and the
    classes, the shape, and ``rule``, which says in words how pixels are made of a file. Times and the place of
    ``root`` do not count. Files that differ only between their ends, at equal length, are not told apart: for that, all
    would have to be read.
    """
    header = {"classes": list(classes), "shape": files.shape, "rule": rule}
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    facts = in_threads(_facts, [files.root / file for file in files.files])
    for file, label, (size, ends) in zip(files.files, labels.tolist(), facts, strict=True):
        digest.update(json.dumps([file, label, size, ends]).encode())
    return digest.hexdigest()


def _facts(file: Path) -> tuple[int, str]:
    """Return the length of a file and the sha256 of its ends."""
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            digest = hashlib.sha256(stream.read(ENDS))
            stream.seek(max(0, size - ENDS))
            digest.update(stream.read(ENDS))
    except OSError as error:
        raise BadInput(f"image {file} cannot be read ({error.strerror}); remove or replace it") from error
    return size, digest.hexdigest()

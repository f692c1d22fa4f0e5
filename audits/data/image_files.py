"""Images that stay encoded: an array of them that decodes only the rows it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from audits.processors import usable_cpus

Shape = tuple[int, int, int]
Decoder = Callable[[Path, Shape, bytes | None], npt.NDArray[Any]]
Rows = slice | Sequence[int] | npt.NDArray[np.integer[Any]]
THREADS = 8
IN_FLIGHT = 4096  # items that wait for a thread at a time


class Images(ABC):
    """Stands for a uint8 array (N, C, H, W) whose rows are encoded images, decoded when they are asked for.

    ``decode(file, point_shape, content)`` returns an image as uint8 (C, H, W): that of ``file``, or of ``content``
    where it is not None; messages then call it ``file``. It must be a function of a module, so that the array can be
    sent to other processes. Several rows are decoded at a time; nothing is kept.
    """

    point_shape: Shape
    decode: Decoder

    ndim = 4
    dtype = np.dtype(np.uint8)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def encoded(self, row: int) -> tuple[Path, bytes | None]:
        """Return the file of an image, or what messages call it and its bytes."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The name of each image: the path of its file below the root of the set, with slashes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W)."""
        return (len(self), *self.point_shape)

    @property
    def nbytes(self) -> int:
        """Bytes that all rows would take in memory."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __getitem__(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Return copies of ``rows`` (a slice or indices), in that order, uint8 (rows, C, H, W).

        BadInput names the first image that cannot be decoded.
        """
        chosen = np.arange(len(self))[rows]
        images = np.empty((len(chosen), *self.point_shape), dtype=np.uint8)

        def fill(place: int) -> None:
            images[place] = self.image(int(chosen[place]))

        for _ in in_threads(fill, range(len(chosen))):
            pass
        return images

    def image(self, row: int) -> npt.NDArray[np.uint8]:
        """Return one row, uint8 (C, H, W)."""
        file, content = self.encoded(row)
        return self.decode(file, self.point_shape, content)


class Seen(Protocol):
    """A way to see images other than whole: ``audits.data.views.Views``."""

    def image(self, images: Images, row: int) -> npt.NDArray[np.uint8]:
        """Return a row of ``images`` as it is seen, uint8 (C, H, W)."""


@dataclass(frozen=True, eq=False)
class ImageFiles(Images):
    """Images that are files below ``root``, in the order of ``files``."""

    root: Path
    files: tuple[str, ...]
    point_shape: Shape
    decode: Decoder

    def __len__(self) -> int:
        return len(self.files)

    @property
    def names(self) -> tuple[str, ...]:
        """The files."""
        return self.files

    def encoded(self, row: int) -> tuple[Path, None]:
        """Return the file of an image."""
        return self.root / self.files[row], None


def in_threads(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield ``work(item)`` in order, worked out by a few threads; Pillow and hashlib let them run side by side."""
    if len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(THREADS, usable_cpus(), len(items))) as pool:
        for start in range(0, len(items), IN_FLIGHT):
            yield from pool.map(work, items[start : start + IN_FLIGHT])

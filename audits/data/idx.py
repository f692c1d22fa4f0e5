"""Files in the idx format of MNIST, plain or gzip-compressed, and the two data sets that come in it."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.data.bounded import ADVICE, room, too_large
from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.lfs_pointers import check_fetched
from audits.data.regular import content_of
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

PARTS = ("train", "t10k")
UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the unsigned bytes of an idx file, in the shape its header states.

    The header is two zero bytes, the type (0x08: unsigned byte, the only one read), the number of dimensions, and
    each dimension as a big-endian 32-bit number. BadInput when the file is unreadable or not exactly as long as
    its header says.
    """
    check_fetched(path, str(path))
    try:
        content = content_of(path)
        content = unpacked(content, path) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE:
        raise BadInput(f"{path} is not an idx file of unsigned bytes")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise BadInput(f"{path} ends within its header")
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], dtype=">u4"))
    if len(content) != start + math.prod(shape):
        raise BadInput(f"{path} is not as long as its header says ({len(content)} bytes for shape {shape})")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def unpacked(content: bytes, path: Path) -> bytes:
    """Return what the bytes of the gzip file ``path`` hold; BadInput for more than there is room for."""
    most = room()
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        found = stream.read(most + 1)
    if len(found) > most:
        raise too_large(str(path), most, ADVICE)
    return found


@dataclass(frozen=True)
class IdxSet:
    """A data set of four idx files: images and labels of the parts ``train`` and ``t10k``.

    The option ``average=K`` (``mnist?average=2``) replaces blocks of K×K pixels by their means, ``size=N``
    (``mnist?size=32``) scales to N×N bilinearly. ``layout`` is the folder that torchvision makes for it under its root.
    """

    points: int
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    layout: str
    licence: str
    how_to_get: str

    def describe(self, request: Request) -> Description:
        """Say whether all four files are there, without opening them."""
        block, size = self._block(request), self._size(request)
        folders = self._folders(request)
        found = next((folder for folder in folders if _files(folder) is not None), None)
        where = [str(folder) for folder in folders] if found is None else [str(found)]
        channels, *sides = self.shape
        height, width = (size or side // block for side in sides)
        return Description(
            request.name, self.points, (channels, height, width), self.classes, IMAGE_RANGE, where, found is not None,
            self.licence, self.how_to_get,
        )  # fmt: skip

    def load(self, request: Request) -> Dataset:
        """Read the training part, then the test part."""
        description = self.describe(request)
        if not description.present:
            raise description.missing()
        inputs, labels = read_parts(Path(description.where[0]))
        size = self._size(request)
        images = scaled(inputs, size) if size else average_blocks(inputs, self._block(request))
        return Dataset(request.name, images, labels, self.classes, IMAGE_RANGE)

    def _block(self, request: Request) -> int:
        request.allow("average", "size")
        block = request.whole_number("average", 1, least=1)
        if self.shape[1] % block or self.shape[2] % block:
            raise BadInput(f"data set {request.name!r}: average is {block}; it must divide {self.shape[1]}")
        return block

    def _size(self, request: Request) -> int | None:
        if "size" not in request.options:
            return None
        if "average" in request.options:
            raise BadInput(f"data set {request.name!r}: average and size are two ways to scale; give one of them")
        return request.whole_number("size", 0, least=1)

    def _folders(self, request: Request) -> list[Path]:
        below = [] if request.root is None else [request.root / self.layout]
        return [*request.folders(), *below]


def read_parts(folder: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return images (N, 1, H, W) and labels (N,) of the four files in ``folder``, train before t10k."""
    files = _files(folder)
    if files is None:
        raise BadInput(f"{folder} does not hold the idx files {', '.join(_names())} (plain or .gz)")
    arrays: list[npt.NDArray[Any]] = [read_idx(file) for file in files]
    images, labels = arrays[0::2], arrays[1::2]
    for image, label, file in zip(images, labels, files[0::2], strict=True):
        if image.ndim != 3 or label.shape != image.shape[:1] or image.shape[1:] != images[0].shape[1:]:
            raise BadInput(f"{file}: images of shape {image.shape} do not fit labels of shape {label.shape}")
    return np.concatenate(images)[:, None], np.concatenate(labels).astype(np.int64)


def average_blocks(images: npt.NDArray[np.uint8], block: int) -> npt.NDArray[np.uint8]:
    """Return the means of blocks of ``block`` × ``block`` pixels: uint8 (N, C, H, W) to (N, C, H/block, W/block).

    Means are rounded to the nearest whole number, halves up. The block must divide H and W.
    """
    if block == 1:
        return images
    count, channels, height, width = images.shape
    blocks = images.reshape(count, channels, height // block, block, width // block, block)
    total: npt.NDArray[Any] = blocks.sum(axis=(3, 5), dtype=np.uint32)
    return ((2 * total + block**2) // (2 * block**2)).astype(np.uint8)


def scaled(images: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Return grey images scaled by Pillow's bilinear filter: uint8 (N, 1, H, W) to (N, 1, size, size)."""
    from PIL import Image

    result = np.empty((len(images), 1, size, size), dtype=np.uint8)
    for image, place in zip(images[:, 0], result[:, 0], strict=True):
        place[:] = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
    return result


def _names() -> list[str]:
    return [f"{part}-{kind}" for part in PARTS for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def _files(folder: Path) -> list[Path] | None:
    files = []
    for name in _names():
        found = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
        if found is None:
            return None
        files.append(found)
    return files


FASHION_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

FASHION_MNIST = IdxSet(
    points=70_000,
    shape=(1, 28, 28),
    classes=FASHION_CLASSES,
    layout="FashionMNIST/raw",
    licence="MIT (Zalando SE)",
    how_to_get="install Debian's package dataset-fashion-mnist, or put the four idx files into one of these folders",
)
MNIST = IdxSet(
    points=70_000,
    shape=(1, 28, 28),
    classes=tuple("0123456789"),
    layout="MNIST/raw",
    licence="CC BY-SA 3.0 (Y. LeCun, C. Cortes)",
    how_to_get="put the four idx files (train-images-idx3-ubyte.gz, ...) into one of these folders",
)

CATALOGUE.register("fashion-mnist")(
    Source(
        "fashion-mnist?average=K|size=N",
        "70 000 grey images of clothes, 28×28",
        FASHION_MNIST.describe,
        FASHION_MNIST.load,
    )
)
CATALOGUE.register("mnist")(
    Source("mnist?average=K|size=N", "70 000 handwritten digits, 28×28", MNIST.describe, MNIST.load)
)

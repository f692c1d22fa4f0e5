"""``cifar10`` and ``cifar100``: the authors' files for Python (pickles, never unpickled here) or for C (binary)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.lfs_pointers import check_fetched
from audits.data.plain_pickle import Array, read_plain_pickle
from audits.data.regular import content_of
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
Part = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class CifarSet:
    """One of the two data sets: its files in both layouts, training parts first.

    ``labels_key``: the list of labels in a pickle; ``label_bytes``: how many bytes precede an image in the binary
    layout, of which the last one is the label.
    """

    python_layout: str
    python_files: tuple[str, ...]
    labels_key: str
    binary_layout: str
    binary_files: tuple[str, ...]
    label_bytes: int
    classes: tuple[str, ...]
    how_to_get: str

    def describe(self, request: Request) -> Description:
        """Say whether the files are there, without opening them."""
        request.allow()
        places = request.places(self.python_layout, self.binary_layout)
        found = next((place for place in places if self.files(place)), None)
        looked = [str(place) for place in places if place.name == self.python_layout]
        return Description(
            request.name, 60_000, SHAPE, self.classes, IMAGE_RANGE, [str(found)] if found else looked,
            found is not None, "none stated (A. Krizhevsky)", self.how_to_get,
        )  # fmt: skip

    def load(self, request: Request) -> Dataset:
        """Read all parts in their order: the training images, then the test images."""
        description = self.describe(request)
        if not description.present:
            raise description.missing()
        parts = [self.part(file) for file in self.files(Path(description.where[0]))]
        inputs, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return Dataset(request.name, inputs, labels, self.classes, IMAGE_RANGE)

    def files(self, folder: Path) -> list[Path]:
        """Return the files of whichever layout is complete in ``folder``, or none."""
        for names in (self.python_files, self.binary_files):
            files = [folder / name for name in names]
            if all(file.is_file() for file in files):
                return files
        return []

    def part(self, file: Path) -> Part:
        """Return images (N, 3, 32, 32) and labels (N,) of one file."""
        try:
            content = content_of(file)
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error}") from error
        check_fetched(content, str(file))
        images, labels = (self.binary if file.suffix == ".bin" else self.pickled)(content, file)
        if len(labels) != len(images) or (len(labels) and not 0 <= labels.min() <= labels.max() < len(self.classes)):
            raise BadInput(
                f"{file}: {len(labels)} labels for {len(images)} images, or labels outside 0 to {len(self.classes) - 1}"
            )
        return images.reshape(-1, *SHAPE), labels

    def binary(self, content: bytes, file: Path) -> Part:
        """Return pixels (N, 3072) and labels of a binary file, one record an image."""
        record = self.label_bytes + PIXELS
        if not content or len(content) % record:
            raise BadInput(f"{file} has {len(content)} bytes; needed: a multiple of {record}, one record an image")
        rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, record)
        return rows[:, self.label_bytes :], rows[:, self.label_bytes - 1].astype(np.int64)

    def pickled(self, content: bytes, file: Path) -> Part:
        """Return pixels (N, 3072) and labels of a pickle, which is read as data and never executed."""
        value = read_plain_pickle(content, str(file))
        fields: dict[Any, Any] = value if isinstance(value, dict) else {}
        pixels, labels = (_field(fields, name) for name in ("data", self.labels_key))
        if not isinstance(pixels, Array) or len(pixels.shape) != 2 or pixels.shape[1] != PIXELS:
            raise BadInput(f"{file} has no array 'data' of shape (N, {PIXELS})")
        if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
            raise BadInput(f"{file} has no list {self.labels_key!r} of whole numbers from 0 to {len(self.classes) - 1}")
        return pixels.bytes_of_shape(), np.array(labels, dtype=np.int64)


def _field(fields: dict[Any, Any], name: str) -> Any:
    return fields.get(name, fields.get(name.encode()))


CIFAR10 = CifarSet(
    python_layout="cifar-10-batches-py",
    python_files=(*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"),
    labels_key="labels",
    binary_layout="cifar-10-batches-bin",
    binary_files=(*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),
    label_bytes=1,
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    how_to_get="unpack cifar-10-python.tar.gz (or cifar-10-binary.tar.gz) of "
    "https://www.cs.toronto.edu/~kriz/cifar.html so that one of these folders is there",
)
CIFAR100_CLASSES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk",
    "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip
CIFAR100 = CifarSet(
    python_layout="cifar-100-python",
    python_files=("train", "test"),
    labels_key="fine_labels",
    binary_layout="cifar-100-binary",
    binary_files=("train.bin", "test.bin"),
    label_bytes=2,
    classes=CIFAR100_CLASSES,
    how_to_get="unpack cifar-100-python.tar.gz (or cifar-100-binary.tar.gz) of "
    "https://www.cs.toronto.edu/~kriz/cifar.html so that one of these folders is there",
)

CATALOGUE.register("cifar10")(
    Source("cifar10", "60 000 colour images of 10 classes, 32×32", CIFAR10.describe, CIFAR10.load)
)
CATALOGUE.register("cifar100")(
    Source("cifar100", "60 000 colour images of 100 classes, 32×32", CIFAR100.describe, CIFAR100.load)
)

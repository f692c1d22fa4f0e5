"""``fashion14``: the 70 000 images of Fashion-MNIST averaged 2×2 to 14×14, embedded in the package.

The file beside this module was made by ``make_fashion14`` from the four original idx files and is checked by
fingerprint when it is read; ``fashion-mnist?average=2`` gives the same points from the originals. Fashion-MNIST:
Copyright 2017 Zalando SE, MIT licence (LICENSE in this folder).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.idx import FASHION_CLASSES, average_blocks, read_parts
from audits.data.shards import pack, unpack
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

FILE = "fashion14.parquet"
FINGERPRINT = "58c015d6fa527ae7ab14276c8a633d97935bdc20ba2d58a9a48b5d82d424b65f"


def make_fashion14(idx_folder: Path) -> bytes:
    """Return the embedded Parquet file, made from the four idx files (plain or .gz) of Fashion-MNIST in ``idx_folder``.

    The images keep their order: 60 000 of the training file, then 10 000 of the test file. BadInput when the files
    are missing or are not those of Fashion-MNIST.
    """
    images, labels = read_parts(idx_folder)
    dataset = Dataset("fashion14", average_blocks(images, 2), labels, FASHION_CLASSES, IMAGE_RANGE)
    if dataset.fingerprint != FINGERPRINT:
        raise BadInput(f"{idx_folder}: these are not the files of Fashion-MNIST (fingerprint {dataset.fingerprint})")
    return pack(dataset, compression_level=19)


def describe(request: Request) -> Description:
    """Describe the set; it is always there."""
    request.allow()
    return Description(
        request.name, 70_000, (1, 14, 14), FASHION_CLASSES, IMAGE_RANGE, [str(files(__name__) / FILE)], True,
        "MIT (Zalando SE)", "it comes with this package",
    )  # fmt: skip


def load(request: Request) -> Dataset:
    """Read the embedded file; BadInput when it is missing or not the one this version was made with."""
    request.allow()
    file = files(__name__) / FILE
    if not file.is_file():
        raise BadInput(f"{file} is missing; install this package again")
    dataset = unpack(request.name, [file.read_bytes()], str(file))
    if dataset.fingerprint != FINGERPRINT:
        raise BadInput(f"{file} is not the file of this version (fingerprint); install this package again")
    return dataset


CATALOGUE.register("fashion14")(Source("fashion14", "70 000 grey images of clothes, 14×14, embedded", describe, load))

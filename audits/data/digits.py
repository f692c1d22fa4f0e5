"""``digits``: the 1 797 handwritten digits of 8×8 pixels that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.idx import scaled
from audits.data.source import CATALOGUE, Request, Source

CLASSES = tuple("0123456789")
SIDE = 8


def describe(request: Request) -> Description:
    """Describe the set; it is always there."""
    request.allow("size")
    size = request.whole_number("size", SIDE, least=1)
    return Description(
        request.name, 1797, (1, size, size), CLASSES, IMAGE_RANGE, ["scikit-learn"], True,
        "CC BY 4.0 (E. Alpaydin, C. Kaynak; UCI)", "it comes with scikit-learn",
    )  # fmt: skip


def load(request: Request) -> Dataset:
    """Read the set; its grey values 0..16 become round(value · 255 / 16); ``size=N`` scales it to N×N bilinearly."""
    from sklearn.datasets import load_digits

    request.allow("size")
    size = request.whole_number("size", SIDE, least=1)
    bunch = load_digits()
    inputs = np.floor(bunch.images * (255 / 16) + 0.5).astype(np.uint8)[:, None]
    images = inputs if size == SIDE else scaled(inputs, size)
    return Dataset(request.name, images, bunch.target.astype(np.int64), CLASSES, IMAGE_RANGE)


CATALOGUE.register("digits")(Source("digits?size=N", "1 797 handwritten digits, 8×8, of scikit-learn", describe, load))

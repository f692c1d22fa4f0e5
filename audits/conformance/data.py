"""Checks of every data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from audits.conformance.outcome import must
from audits.data.catalogue import describe, load
from audits.data.dataset import Dataset


@dataclass(frozen=True)
class DataCase:
    """A data set by name, and the folder in which it is looked for."""

    name: str
    root: Path | None = None

    @cached_property
    def data(self) -> Dataset:
        """The data set."""
        return load(self.name, self.root)


def whole(case: DataCase) -> None:
    """Inputs are uint8 images or float32, labels int64 from 0 to C-1, one of each a point."""
    data = case.data
    must(data.inputs.dtype in (np.uint8, np.float32), f"inputs are {data.inputs.dtype}; return uint8 or float32")
    must(len(data) == len(data.inputs) == len(data.labels) > 0, "there are not as many labels as inputs, or none")
    labels = data.labels
    must(
        labels.dtype == np.int64 and 0 <= labels.min() <= labels.max() < len(data.classes),
        f"labels go from {labels.min()} to {labels.max()} for {len(data.classes)} classes; return 0 to C-1",
    )


def as_described(case: DataCase) -> None:
    """Its description tells name, size, shape, classes and range as they are."""
    told, data = describe(case.name, case.root), case.data
    must(
        told.present and told.name == data.name == case.name, f"it is described as {told.name!r}, and is {data.name!r}"
    )
    must(told.shape in ((), data.shape), f"points are described as {told.shape}, and are {data.shape}")
    must(told.classes in ((), data.classes), "its classes are described otherwise")
    must(told.value_range == data.value_range, "its range is described otherwise")
    must(bool(told.licence and told.how_to_get and told.where), "licence, place or how to get it are not told")


def same_twice(case: DataCase) -> None:
    """Read twice it is the same: equal fingerprints, equal points."""
    second = load(case.name, case.root)
    must(
        case.data.fingerprint == second.fingerprint and len(second.fingerprint) == 64,
        "two calls return other points, so that no stored result could be found again; draw with a fixed seed",
    )
    rows = np.arange(len(second))[::-1][:3]
    one, two = case.data.tensors(rows), second.tensors(rows)
    must(bool(torch.equal(one.x, two.x) and torch.equal(one.y, two.y)), "two calls return other points")
    must(bool((one.y.numpy() == case.data.labels[rows]).all()), "labels of rows are not those of the points")


def read_only(case: DataCase) -> None:
    """Its arrays cannot be changed."""
    arrays = [case.data.labels, *([case.data.inputs] if isinstance(case.data.inputs, np.ndarray) else [])]
    must(not any(array.flags.writeable for array in arrays), "its arrays can be written; return a Dataset")


CHECKS: tuple[Callable[[DataCase], None], ...] = (whole, as_described, same_twice, read_only)

"""A named data set in memory, what is known of it before it is read, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from audits.data.image_files import Images
from audits.data.tensors import TensorSet
from audits.data.undecoded import Files, Undecoded, too_large
from audits.errors import BadInput

if TYPE_CHECKING:
    import torch

Rows = npt.NDArray[np.integer[Any]] | Sequence[int]
IMAGE_RANGE = (0.0, 1.0)
POINTS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Dataset:
    """All points of a data set.

    ``inputs``: uint8 images (N, C, H, W), read as floats in [0, 1], or float32 (N, ...), in memory or, images only,
    encoded and decoded when they are asked for; ``labels``: (N,) int64 in 0..C-1 with C = ``len(classes)``;
    ``value_range``: the allowed interval of every coordinate as the models see it, or None where inputs are unbounded;
    ``fingerprint``: sha256 of the contents (not of the name), made here when it is not given (of encoded images it must
    be given). ``groups``: (N,) int64, which points belong together (``audits.data.groups``), or None; with groups the
    fingerprint is one of contents and groups, and ``ungrouped`` that of the contents alone, made here. ``names``: (N,)
    what each point is called, such as the path of its file below the folder, accepted wherever its id is; None where
    points have no names; no part of the fingerprint. ``notes``: one line each about what reading the data left out or
    took otherwise than a user may expect, which names the data set and no point; shown by ``orch validate`` and at the
    beginning of a run; no part of the fingerprint. The arrays are read-only. Raises BadInput when the parts do not fit
    together.
    """

    name: str
    inputs: npt.NDArray[Any] | Images
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    value_range: tuple[float, float] | None
    fingerprint: str = ""
    groups: npt.NDArray[np.int64] | None = None
    ungrouped: str = ""
    names: Sequence[str] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.inputs.dtype != np.uint8 and self.inputs.dtype != np.float32:
            raise BadInput(f"data set {self.name!r}: inputs are {self.inputs.dtype}; allowed: uint8 or float32")
        if self.inputs.ndim < 2 or (self.inputs.dtype == np.uint8 and self.inputs.ndim != 4):
            raise BadInput(
                f"data set {self.name!r}: inputs have shape {self.inputs.shape}; "
                "allowed: (N, C, H, W) for uint8, (N, ...) for float32"
            )
        if self.labels.dtype != np.int64 or self.labels.shape != self.inputs.shape[:1]:
            raise BadInput(
                f"data set {self.name!r}: labels are {self.labels.dtype} of shape {self.labels.shape}; "
                f"needed: int64 of shape ({len(self.inputs)},)"
            )
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise BadInput(
                f"data set {self.name!r}: labels go from {self.labels.min()} to {self.labels.max()}; "
                f"allowed: 0 to {len(self.classes) - 1}"
            )
        if isinstance(self.inputs, np.ndarray):
            object.__setattr__(self, "inputs", _read_only(self.inputs))
        object.__setattr__(self, "labels", _read_only(self.labels))
        if not self.fingerprint:
            object.__setattr__(
                self, "fingerprint", fingerprint(self.inputs, self.labels, self.classes, self.value_range)
            )
        if self.names is not None and len(self.names) != len(self.labels):
            raise BadInput(
                f"data set {self.name!r}: {len(self.names)} names for {len(self.labels)} points; give one each"
            )
        if self.groups is not None:
            self._take_groups(self.groups)

    def _take_groups(self, groups: npt.NDArray[np.int64]) -> None:
        if groups.dtype != np.int64 or groups.shape != self.labels.shape:
            raise BadInput(
                f"data set {self.name!r}: groups are {groups.dtype} of shape {groups.shape}; "
                f"needed: int64 of shape ({len(self.labels)},)"
            )
        object.__setattr__(self, "groups", _read_only(groups))
        if not self.ungrouped:
            digest = hashlib.sha256(f"{self.fingerprint} in groups ".encode())
            digest.update(np.ascontiguousarray(groups).data)
            object.__setattr__(self, "ungrouped", self.fingerprint)
            object.__setattr__(self, "fingerprint", digest.hexdigest())

    def grouped(self, groups: npt.NDArray[np.int64]) -> Dataset:
        """Return the same points, divided into ``groups`` (N,) int64."""
        return replace(self, fingerprint=self.contents, groups=groups, ungrouped="")

    @property
    def contents(self) -> str:
        """The fingerprint of the points alone, whatever their groups."""
        return self.ungrouped or self.fingerprint

    @property
    def in_memory(self) -> bool:
        """Whether the inputs are an array, and not encoded images."""
        return isinstance(self.inputs, np.ndarray)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one point, for example (1, 14, 14)."""
        return tuple(int(size) for size in self.inputs.shape[1:])

    def tensors(self, rows: Rows | None = None, device: str = "cpu") -> TensorSet:
        """Return copies of ``rows`` (all points when None), in that order, as tensors on ``device``.

        Encoded images that would take too much memory are decoded batch by batch, anew in every epoch: more time,
        equal bits.
        """
        import torch

        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64)
        labels = torch.from_numpy(np.take(self.labels, chosen)).to(device)
        waiting = None if isinstance(self.inputs, np.ndarray) else Files(self.inputs, chosen, device)
        if waiting is not None and too_large((len(chosen), *self.shape), device):
            # what reads a TensorSet cannot tell them apart
            return TensorSet(cast("torch.Tensor", Undecoded([waiting])), labels)
        held = torch.from_numpy(self.inputs[chosen]).to(device)
        return TensorSet(held, labels, encoded=None if waiting is None else Undecoded([waiting]))


@dataclass(frozen=True)
class Description:
    """Facts about a data set that are known without reading all of it.

    ``points`` and ``shape`` (of one point) are 0 and () when only reading an absent set would tell; ``classes`` are
    ``unnamed`` when only their number is known; ``where`` names the places that were searched, or the one where it was
    found; ``how_to_get`` is one sentence; ``encoded``: images stay encoded, so that they can be seen at full size;
    ``notes``: as of ``Dataset``.
    """

    name: str
    points: int
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    value_range: tuple[float, float] | None
    where: list[str]
    present: bool
    licence: str
    how_to_get: str
    encoded: bool = False
    notes: tuple[str, ...] = ()

    def missing(self) -> BadInput:
        """Return the error of a set that is not there: where it was looked for and how to get it."""
        return BadInput(f"data set {self.name!r} not found in {', '.join(self.where)}; {self.how_to_get}")


def unnamed(classes: int) -> tuple[str, ...]:
    """Return as many names of classes, for an absent set of which no more is known."""
    return tuple(f"class {number}" for number in range(1, classes + 1))


def fingerprint(
    inputs: npt.NDArray[Any] | Images,
    labels: npt.NDArray[np.int64],
    classes: Sequence[str],
    value_range: tuple[float, float] | None,
) -> str:
    """Return the sha256 (hex) of everything that decides a result: arrays, their dtypes and shapes, classes, range.

    Encoded images are decoded for it, a part at a time.
    """
    header = {
        "inputs": [inputs.dtype.str, list(inputs.shape)],
        "labels": [labels.dtype.str, list(labels.shape)],
        "classes": list(classes),
        "value_range": None if value_range is None else [float(bound) for bound in value_range],
    }
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for start in range(0, len(inputs), POINTS_AT_ONCE):
        digest.update(np.ascontiguousarray(inputs[start : start + POINTS_AT_ONCE]).data)
    digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view

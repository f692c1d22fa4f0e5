"""A labelled set of points as tensors on one device: what training, unlearning and attacks read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from audits.data.image_files import Seen
from audits.data.undecoded import Undecoded
from audits.errors import BadInput

if TYPE_CHECKING:
    import torch


Share = Callable[[int], slice]
"""Points of a batch → which of them are wanted, in their order."""

WHERE = "leave it out, or name imagenet, caltech101, flowers102, shards:DIR, or a folder: of more than 1 GiB"


def everything(points: int) -> slice:
    """Return all ``points`` of a batch."""
    return slice(0, points)


@dataclass(frozen=True)
class TensorSet:
    """``x``: (N, ...) float inputs or uint8 images; ``y``: (N,) int64 labels; both on the same device.

    uint8 inputs are turned into floats in [0, 1] batch by batch (``batch``), so that a set stays small in memory.
    ``encoded``: the images at full size, of which ``views`` are made, where ``x`` holds their pixels; None where there
    are none, or where ``x`` itself decodes them.
    """

    x: torch.Tensor
    y: torch.Tensor
    encoded: Undecoded | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"{len(self.x)} inputs but {len(self.y)} labels")

    def __len__(self) -> int:
        return len(self.y)

    def batch(self, rows: torch.Tensor | slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the inputs (as floats) and labels of ``rows``."""
        self.note_rows(rows)
        x = self.x[rows]
        return as_float(x), self.y[rows]

    def batches(
        self, parts: Sequence[torch.Tensor], views: Seen | None = None, share: Share = everything
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the inputs (as floats) of a ``share`` of each part's rows, and the labels of all: a step of a training.

        Images that are not in memory are decoded ahead of their turn; so are ``views``, which are made of images at
        full size even where those in memory are scaled. To go on in the midst of an epoch, give the parts that are
        left. BadInput where views are asked of images that are nowhere at full size.
        """
        waiting = self.x if isinstance(self.x, Undecoded) else None if views is None else self.encoded
        if waiting is None:
            if views is not None:
                raise BadInput(f"recipe.random_crop needs images at full size, but these are held scaled; {WHERE}")
            for rows, here in zip(parts, at_once_on(self.y.device, parts), strict=True):
                self.note_rows(rows)
                yield as_float(self.x[here[share(len(here))]]), self.y[here]
            return
        own = [rows[share(len(rows))] for rows in parts]
        for rows, here, x in zip(parts, at_once_on(self.y.device, parts), waiting.ahead(own, views), strict=True):
            self.note_rows(rows)
            yield as_float(x), self.y[here]

    def note_rows(self, rows: torch.Tensor | slice) -> None:
        """Take note that ``rows`` are given out next; here nobody does."""

    def all(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all inputs (as floats) and labels."""
        return as_float(self.x), self.y


def at_once_on(device: torch.device, parts: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return the ``parts`` (n,) of an epoch on ``device``, copied there once and not once a step."""
    import torch

    if device.type == "cpu" or not parts:
        return parts
    return list(torch.split(torch.cat(list(parts)).to(device), [len(part) for part in parts]))


def as_float(x: torch.Tensor) -> torch.Tensor:
    """Return uint8 images as float32 in [0, 1]; floats are returned as they are."""
    import torch

    return x.float().div_(255.0) if x.dtype == torch.uint8 else x


def devices_of(data: TensorSet) -> list[torch.device]:
    """Return the CUDA devices whose generator a run on ``data`` would touch."""
    return [data.y.device] if data.y.device.type == "cuda" else []

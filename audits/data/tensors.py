"""A labelled set of points as tensors on one device: what training, unlearning and attacks read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TensorSet:
    """``x``: (N, ...) float inputs or uint8 images; ``y``: (N,) int64 labels; both on the same device.

    uint8 inputs are turned into floats in [0, 1] batch by batch (``batch``), so that a set stays small in memory.
    """

    x: torch.Tensor
    y: torch.Tensor

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"{len(self.x)} inputs but {len(self.y)} labels")

    def __len__(self) -> int:
        return len(self.y)

    def batch(self, rows: torch.Tensor | slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the inputs (as floats) and labels of ``rows``."""
        x = self.x[rows]
        return as_float(x), self.y[rows]

    def all(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all inputs (as floats) and labels."""
        return as_float(self.x), self.y


def as_float(x: torch.Tensor) -> torch.Tensor:
    """Return uint8 images as float32 in [0, 1]; floats are returned as they are."""
    import torch

    return x.float().div_(255.0) if x.dtype == torch.uint8 else x


def devices_of(data: TensorSet) -> list[torch.device]:
    """Return the CUDA devices whose generator a run on ``data`` would touch."""
    return [data.y.device] if data.y.device.type == "cuda" else []

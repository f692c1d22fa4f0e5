"""Labels of several models that are asked at once: on a GPU one launch takes the place of one a model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from audits.memory import by_chunks
from audits.models.stacked import Stacked, stacked

INPUTS_AT_ONCE = 2**15
"""Of all models together; where memory does not suffice, half of it, and so on, then fewer models (``by_chunks``)."""


class Together:
    """The labels of m models of one form, ``count``; ``asked`` is how many labels each of them has given."""

    def __init__(self, models: Stacked, shape: tuple[int, ...]) -> None:
        self.models, self.shape, self.count, self.asked = models, shape, models.count, 0

    @torch.no_grad()
    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        """Return labels (m·N,) of points (m·N, D): the first N are asked of the first model, and so on."""
        own = points.reshape(self.count, -1, *self.shape)
        self.asked += own.shape[1]
        chunk = max(1, INPUTS_AT_ONCE // self.count)
        return torch.cat(
            by_chunks(lambda rows: self.models.each(own[:, rows]).argmax(-1), own.shape[1], chunk, self.models.fewer), 1
        ).flatten()

    @torch.no_grad()
    def same(self, points: torch.Tensor) -> torch.Tensor:
        """Return labels (m, N) of the points (N, ...) that all models are asked about."""
        self.asked += len(points)
        chunk = max(1, INPUTS_AT_ONCE // self.count)
        return torch.cat(
            by_chunks(lambda rows: self.models.same(points[rows]).argmax(-1), len(points), chunk, self.models.fewer), 1
        )


def together(models: Sequence[nn.Module], shape: tuple[int, ...], x: torch.Tensor) -> Together | None:
    """Return the labels of all ``models`` about points like ``x`` (K, D), or None where one by one is better.

    ``shape``: of one point. See ``audits.models.stacked``.
    """
    found = stacked(models, x[:1].reshape(1, *shape))
    return None if found is None else Together(found, shape)

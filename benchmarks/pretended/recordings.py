"""Work that was recorded, on the pretended device: it is computed again, and counts as one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from benchmarks.pretended.tensor import OnDevice


class Again:
    """In the place of ``audits.training.backward.Graph``. It counts waits, where a real recording would fail."""

    def __init__(
        self,
        work: Callable[..., torch.Tensor | None],
        parameters: Sequence[nn.Parameter],
        batch: Sequence[torch.Tensor],
    ) -> None:
        self.work, self.batch = work, [torch.empty_like(each) for each in batch]

    def play(self, batch: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """Do the work on ``batch`` and return its result."""
        for own, given in zip(self.batch, batch, strict=True):
            own.copy_(given)
        with OnDevice.counts.played():
            return self.work(*self.batch)

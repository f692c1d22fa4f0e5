"""The random draws of HopSkipJump: they belong to a point's id, and are the same for every model that is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from audits.seeds import derive_seed


class Draws:
    """The draws for K points of ``ids``; ``like`` (K, D) gives their dtype, device and D.

    One counter-based generator (Philox; key: seed and id) a point and round, so that neither other points nor other
    rounds change a draw. Directions are handed over in parts of about ``rows_at_once`` of them. ``room``: so many bytes
    of directions are kept for the models that are asked later; those of other rounds are drawn again for each.
    """

    def __init__(
        self,
        ids: npt.NDArray[np.int64] | Sequence[int],
        seed: int,
        like: torch.Tensor,
        rows_at_once: int,
        room: int = 0,
    ) -> None:
        purpose = derive_seed(seed, "hop_skip_jump")
        self.keys = [np.array([purpose, point], dtype=np.uint64) for point in ids]
        self.like = like
        self.at_once = max(1, rows_at_once // len(like))
        self.room = room
        self.kept: dict[tuple[int, int], list[torch.Tensor]] = {}

    def streams(self, restart: int, t: int) -> list[np.random.Generator]:
        """Return each point's generator for round ``t`` of walk ``restart``; (0, 0) is that of its start points."""
        counter = np.array([0, 0, restart, t], dtype=np.uint64)
        return [np.random.Generator(np.random.Philox(key=key, counter=counter)) for key in self.keys]

    def directions(self, restart: int, t: int, count: int) -> Iterator[torch.Tensor]:
        """Yield the ``count`` unit vectors a point of a round, in parts (K, part, D); they are not to be written to."""
        if (restart, t) in self.kept:
            yield from self.kept[restart, t]
            return
        streams = self.streams(restart, t)
        parts = (
            unit_vectors(streams, min(self.at_once, count - first), self.like)
            for first in range(0, count, self.at_once)
        )
        size = count * self.like.numel() * self.like.element_size()
        if size <= self.room:
            self.room -= size
            yield from self.kept.setdefault((restart, t), list(parts))
        else:
            yield from parts


def unit_vectors(streams: Sequence[np.random.Generator], count: int, like: torch.Tensor) -> torch.Tensor:
    """Return the next ``count`` unit vectors a point (K, count, D), each point's from its own stream."""
    draws = np.empty((len(streams), count, like.shape[1]), dtype=np.float32)
    for own, rows in zip(streams, draws, strict=True):
        own.standard_normal(out=rows, dtype=np.float32)
    found = torch.from_numpy(draws).to(like)
    return found.div_(torch.linalg.vector_norm(found, dim=-1, keepdim=True))

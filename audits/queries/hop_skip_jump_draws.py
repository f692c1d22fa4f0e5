"""The random draws of HopSkipJump: they belong to a point's id, and are the same for every model that is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from audits.seeds import Purpose, derive_seed


class Draws:
    """The draws for K points of ``ids``; ``like`` (K, D) gives their dtype, device and D.

    ``like`` may hold the K points several times over, once for each of the models that are asked at once: each point's
    draws are then repeated as often.

    One counter-based generator (Philox; key: seed and id) a point and round, so that neither other points nor other
    rounds change a draw. Directions are handed over in parts of ``rows_at_once`` of them or fewer. ``room``: so many
    bytes of directions are kept for the models that are asked later; those of other rounds are drawn again for each.

    ``orthogonal``: the directions of a walk, its rounds one after the other, are blocks of D that are at right angles
    to each other (``orthogonal_vectors``), each block by a generator of its own.
    """

    def __init__(
        self,
        ids: npt.NDArray[np.int64] | Sequence[int],
        seed: int,
        like: torch.Tensor,
        rows_at_once: int,
        room: int = 0,
        *,
        orthogonal: bool = False,
    ) -> None:
        purpose = derive_seed(seed, Purpose.HOP_SKIP_JUMP)
        self.keys = [np.array([purpose, point], dtype=np.uint64) for point in ids]
        self.like = like
        self.at_once = max(1, rows_at_once // len(like))
        self.room, self.orthogonal = room, orthogonal
        self.kept: dict[tuple[int, int], list[torch.Tensor]] = {}

    def streams(self, restart: int, t: int) -> list[np.random.Generator]:
        """Return each point's generator for round ``t`` of walk ``restart``; (0, 0) is that of its start points."""
        counter = np.array([0, 0, restart, t], dtype=np.uint64)
        return [np.random.Generator(np.random.Philox(key=key, counter=counter)) for key in self.keys]

    def block_streams(self, restart: int, block: int) -> list[np.random.Generator]:
        """Return each point's generator for block 0, 1, … of the orthogonal directions of walk ``restart``."""
        counter = np.array([0, 1 + block, restart, 0], dtype=np.uint64)
        return [np.random.Generator(np.random.Philox(key=key, counter=counter)) for key in self.keys]

    def directions(self, restart: int, t: int, count: int, before: int = 0) -> Iterator[torch.Tensor]:
        """Yield the ``count`` unit vectors a point of a round, in parts (K, part, D); they are not to be written to.

        ``before``: how many directions earlier rounds of the walk took, which orthogonal ones go on from.
        """
        if (restart, t) in self.kept:
            yield from self.kept[restart, t]
            return
        parts = self.at_right_angles(restart, before, count) if self.orthogonal else self.at_random(restart, t, count)
        size = count * self.like.numel() * self.like.element_size()
        if size <= self.room:
            self.room -= size
            yield from self.kept.setdefault((restart, t), list(parts))
        else:
            yield from parts

    def at_random(self, restart: int, t: int, count: int) -> Iterator[torch.Tensor]:
        """Yield independent directions of a round, see ``directions``."""
        streams = self.streams(restart, t)
        for first in range(0, count, self.at_once):
            yield unit_vectors(streams, min(self.at_once, count - first), self.like)

    def at_right_angles(self, restart: int, before: int, count: int) -> Iterator[torch.Tensor]:
        """Yield orthogonal directions ``before`` to ``before + count`` of a walk, see ``directions``."""
        dimensions, end = self.like.shape[1], before + count
        for block in range(before // dimensions, -(-end // dimensions)):
            signs = random_signs(self.block_streams(restart, block), dimensions)
            rows = range(max(before - block * dimensions, 0), min(end - block * dimensions, dimensions))
            for first in range(rows.start, rows.stop, self.at_once):
                yield orthogonal_vectors(signs, range(first, min(first + self.at_once, rows.stop)), self.like)


def random_signs(streams: Sequence[np.random.Generator], dimensions: int) -> npt.NDArray[np.float32]:
    """Return two rows of random signs a point, (K, 2, D), each point's from its own stream."""
    drawn = np.stack([own.integers(0, 2, (2, dimensions), dtype=np.int8) for own in streams])
    return (2 * drawn - 1).astype(np.float32)


def orthogonal_vectors(signs: npt.NDArray[np.float32], rows: range, like: torch.Tensor) -> torch.Tensor:
    """Return the directions ``rows`` of a point's orthonormal block of D, (K, rows, D), by its ``signs`` (K, 2, D).

    Row i is row i of C·S·Cᵀ·S', with the matrix C of the discrete cosine transform, whose rows are waves, and the signs
    on the diagonals of S and S'. Right angles spare the estimate of a normal the overlaps of its directions: of n
    directions with the answers ±1, cos² of the angle to the normal of a plane is about 2n/π / (D + 2n/π) for
    independent ones, and 2n/π / (D + 2·max(n − D, 0)/π) for blocks. A transform takes D·log D steps a direction, where
    Gram and Schmidt take n·D.
    """
    from scipy.fft import dct

    dimensions = like.shape[1]
    places, waves = np.arange(dimensions) + 0.5, np.arange(rows.start, rows.stop)[:, None]
    cosines = np.sqrt(2 / dimensions) * np.cos(math.pi / dimensions * waves * places)
    cosines[waves[:, 0] == 0] /= math.sqrt(2)
    mixed = dct(cosines.astype(np.float32) * signs[:, :1], type=2, norm="ortho", axis=-1)
    return repeated(torch.from_numpy(mixed * signs[:, 1:]).to(like), like)


def unit_vectors(streams: Sequence[np.random.Generator], count: int, like: torch.Tensor) -> torch.Tensor:
    """Return the next ``count`` unit vectors a point (K, count, D), each point's from its own stream."""
    draws = np.empty((len(streams), count, like.shape[1]), dtype=np.float32)
    for own, rows in zip(streams, draws, strict=True):
        own.standard_normal(out=rows, dtype=np.float32)
    found = torch.from_numpy(draws).to(like)
    return repeated(found.div_(torch.linalg.vector_norm(found, dim=-1, keepdim=True)), like)


def repeated(draws: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return ``draws`` (K, …) as often as ``like`` holds the K points."""
    copies = len(like) // len(draws)
    return draws if copies == 1 else draws.repeat(copies, 1, 1)

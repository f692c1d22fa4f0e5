"""Points that are clustered: squared distances to centres and means of clusters, in bounded memory.

Features are held whole (N, D), or handed over as column blocks, one at a time: squared distances are sums over blocks.
Both forms do the same arithmetic, rows by chunks, and on a GPU in a fixed order too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed
from audits.tmia.features import gaussian_map


@dataclass(frozen=True)
class Whole:
    """All features (N, D) in memory."""

    features: torch.Tensor
    chunk: int

    def nearest(self, centres: torch.Tensor) -> torch.Tensor:
        """Return the index (N,) of each point's nearest centre; the first of equally near ones."""
        return torch.cat([compared(rows, centres).argmin(1) for rows in self.features.split(self.chunk)])

    def moved(self, assignment: torch.Tensor, centres: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the means of the assigned points, and each point's nearest mean; without points a centre stays."""
        found = means(self.features, assignment, centres, self.chunk)
        return found, self.nearest(found)

    def squared(self, assignment: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
        """Return the squared distance (N,) float64 of each point to its own centre."""
        return own_squared(self.features, assignment, centres, self.chunk)

    def apart(self, centres: torch.Tensor) -> torch.Tensor:
        """Return all squared distances (N, few) float64, on the CPU."""
        middle = centres.mean(0)
        parts = [
            compared(rows, centres) + (rows - middle).square().sum(1, keepdim=True)
            for rows in self.features.split(self.chunk)
        ]
        return torch.cat(parts).clamp_min(0).double().cpu()


@dataclass(frozen=True)
class Streamed:
    """Column blocks of the features, read one after the other; ``count`` points."""

    blocks: Iterable[torch.Tensor]
    count: int
    chunk: int

    def beside(self, centres: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield each block with its own columns of ``centres``; raises ``BadInput`` where sizes do not fit."""
        first = 0
        for block in self.blocks:
            own = centres[:, first : first + block.shape[1]]
            if (len(block), block.shape[1]) != (self.count, own.shape[1]):
                raise BadInput(
                    f"a block has {len(block)} points and {block.shape[1]} columns, but there are {self.count} points "
                    f"and {own.shape[1]} columns of the centres left for it; give blocks and centres that fit together"
                )
            yield block, own
            first += block.shape[1]
        if first < centres.shape[1]:
            raise BadInput(
                f"centres have {centres.shape[1]} columns, but all blocks together {first}; give one for each"
            )

    def sketch(self, columns: int, seed: int) -> tuple[torch.Tensor, int]:
        """Return (N, D) features and their number D, where D ≤ ``columns``; else a sketch (N, columns) of them, and D.

        The sketch is Σ_b block_b·G_b: each block has a Gaussian map of its own with entries N(0, 1/``columns``). A
        squared distance s becomes s·χ²/``columns`` with χ² of ``columns`` degrees of freedom: its mean is s, its
        relative standard deviation √(2/``columns``), however many blocks there are. Raises ``BadInput`` for blocks of
        unequal length.
        """
        held: list[torch.Tensor] = []
        total: torch.Tensor | None = None
        width = mapped = 0
        for block in self.blocks:
            if len(block) != self.count:
                raise BadInput(
                    f"a block has {len(block)} points, the first {self.count}; give blocks of the same points"
                )
            held.append(block)
            width += block.shape[1]
            while held and width > columns:
                total = block.new_zeros(self.count, columns) if total is None else total
                wide, mapped = held.pop(0), mapped + 1
                way = gaussian_map(wide.shape[1], columns, derive_seed(seed, Purpose.K_MEANS_SKETCH, mapped)).to(wide)
                for rows, part in zip(wide.split(self.chunk), total.split(self.chunk), strict=True):
                    part.addmm_(rows, way)
        return (torch.cat(held, dim=1) if total is None else total), width

    def nearest(self, centres: torch.Tensor) -> torch.Tensor:
        total = centres.new_zeros((self.count, len(centres)))
        for block, own in self.beside(centres):
            self.add(total, block, own)
        return total.argmin(1)

    def moved(self, assignment: torch.Tensor, centres: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return means and nearest means, as ``Whole.moved`` does, in one pass: a block's means need no other block."""
        found, total = [], centres.new_zeros((self.count, len(centres)))
        for block, old in self.beside(centres):
            own = means(block, assignment, old, self.chunk)
            self.add(total, block, own)
            found.append(own)
        return torch.cat(found, dim=1), total.argmin(1)

    def squared(self, assignment: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
        parts = (own_squared(block, assignment, own, self.chunk) for block, own in self.beside(centres))
        return sum(parts, start=centres.new_zeros(self.count, dtype=torch.float64))

    def add(self, total: torch.Tensor, block: torch.Tensor, centres: torch.Tensor) -> None:
        """Add to ``total`` (N, n_clusters) what one block says of the squared distances."""
        for rows, part in zip(block.split(self.chunk), total.split(self.chunk), strict=True):
            part += compared(rows, centres)


def compared(rows: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Return ‖x − u‖² (m, n_clusters), less a number for each row x that no argmin over centres u depends on.

    Both are moved to the mean of the centres first, so that features far from 0 do not cancel each other's digits.
    """
    middle = centres.mean(0)
    near = centres - middle
    return near.square().sum(1) - 2 * (rows - middle) @ near.T


def own_squared(features: torch.Tensor, assignment: torch.Tensor, centres: torch.Tensor, chunk: int) -> torch.Tensor:
    """Return ‖x − u_{c(x)}‖² (N,) in float64, from differences: small distances keep their digits."""
    parts = [
        (rows - centres[own]).square().sum(1, dtype=torch.float64)
        for rows, own in zip(features.split(chunk), assignment.split(chunk), strict=True)
    ]
    return torch.cat(parts)


def means(features: torch.Tensor, assignment: torch.Tensor, old: torch.Tensor, chunk: int) -> torch.Tensor:
    """Return the mean of each cluster's points; ``old`` of a cluster without points.

    Sums are matrix products with 0/1 membership, which have a fixed order on a GPU too; float64 across chunks.
    """
    total = torch.zeros_like(old, dtype=torch.float64)
    clusters = torch.arange(len(old), device=old.device)
    for rows, own in zip(features.split(chunk), assignment.split(chunk), strict=True):
        total += (clusters[:, None] == own).to(rows.dtype) @ rows
    counts = torch.bincount(assignment, minlength=len(old))[:, None]
    return torch.where(counts > 0, (total / counts.clamp_min(1)).to(old.dtype), old)

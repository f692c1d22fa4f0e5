"""Points with few neighbours among reference samples: the selector of PMIA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from audits.arrays import Ids
from audits.errors import BadInput
from audits.tmia.selectors.base import SELECTORS, Case, Scores, Selector


@SELECTORS.register("neighbours")
@dataclass(frozen=True)
class Neighbours(Selector):
    """Minus the expected number of neighbours in the target's training set, as PMIA selects (Long et al., 2020).

    E = #{reference samples of cosine distance < ``delta``}·|D_target|/|D_ref|; the paper's rule E < .1 is
    ``chosen(scores, alpha=-0.1)``. Reference samples have no scores (R² distances). ``delta`` has to be set to the
    features; the default leaves 2 of 600 points with E < .1 on fashion14 (20 mlps of 128-128, 800 points each, 4000
    reference samples), .05 none. ``chunk`` candidates at once: 4·chunk·R bytes, and one reading of the features.
    """

    delta: float = 0.02
    chunk: int = 1024

    def __post_init__(self) -> None:
        if not 0 < self.delta <= 2:
            raise BadInput(f"delta is {self.delta}; allowed: above 0, up to 2, the largest cosine distance")
        if self.chunk < 1:
            raise BadInput(f"chunk is {self.chunk}; it must be 1 or more")

    def select(self, case: Case) -> Scores:
        count, references = neighbours(case.known_features(), case.candidates, self.delta, self.chunk)
        return Scores(-count * case.train_size / references)


def neighbours(
    features: torch.Tensor | Iterable[torch.Tensor], candidates: int, delta: float, chunk: int
) -> tuple[Ids, int]:
    """Return how many rows beyond the first ``candidates`` lie within cosine distance ``delta`` of each of these (K,),
    and how many such rows there are. A row of zeros is at distance 1 of everything."""
    blocks = [features] if isinstance(features, torch.Tensor) else features
    lengths = torch.stack([torch.linalg.vector_norm(block, dim=1) for block in blocks])
    norm = torch.linalg.vector_norm(lengths, dim=0).clamp_min(torch.finfo(torch.float32).tiny)
    rest = len(norm) - candidates
    if rest < 1:
        raise BadInput("neighbours are counted among reference samples, but features hold candidates only")
    counts = []
    for first in range(0, candidates, chunk):
        rows = slice(first, min(first + chunk, candidates))
        product = norm.new_zeros((rows.stop - first, rest))
        for block in blocks:
            product += block[rows] @ block[candidates:].T
        cosine = product / norm[rows, None] / norm[candidates:]
        counts.append((1 - cosine < delta).sum(1))
    return torch.cat(counts).cpu().numpy(), rest

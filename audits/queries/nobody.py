"""Oracles that nobody answers, in the place of targets that must not be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from audits.queries.access import Access
from audits.queries.oracles import LabelOracle, PosteriorOracle


class Nobody(Mapping[int, LabelOracle | PosteriorOracle]):
    """The oracle of every target, by any index: one and the same, which knows no model.

    What gathers evidence asks targets along with shadows; where no target may be asked it is handed this. Whatever is
    kept of its answers means nothing: class 0 everywhere, or equal outputs of ``classes``.
    """

    def __init__(self, access: Access, classes: int) -> None:
        self.oracle: LabelOracle | PosteriorOracle = (
            LabelOracle(lambda points: torch.zeros(len(points), dtype=torch.int64, device=points.device))
            if access == "labels"
            else PosteriorOracle(lambda points: points.new_zeros((len(points), classes), dtype=torch.float64))
        )

    def __getitem__(self, index: int) -> LabelOracle | PosteriorOracle:
        return self.oracle

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0

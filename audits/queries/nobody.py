"""Oracles that nobody answers, in the place of targets that must not be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch

from audits.queries.access import Access
from audits.queries.oracles import LabelOracle, PosteriorOracle

Oracle = TypeVar("Oracle", LabelOracle, PosteriorOracle)


class Nobody(Mapping[int, Oracle]):
    """The oracle of every target, by any index: one and the same, which knows no model.

    What gathers evidence asks targets along with shadows; where no target may be asked it is handed this. Whatever is
    kept of its answers means nothing.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    def __getitem__(self, index: int) -> Oracle:
        return self.oracle

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


def nobody(access: Access, classes: int) -> Nobody[LabelOracle] | Nobody[PosteriorOracle]:
    """Return the stand-in for targets of one level of ``access``: class 0 everywhere, or equal outputs of ``classes``.

    It answers on the device of the question.
    """
    if access == "labels":
        return Nobody(LabelOracle(lambda points: torch.zeros(len(points), dtype=torch.int64, device=points.device)))
    return Nobody(PosteriorOracle(lambda points: points.new_zeros((len(points), classes), dtype=torch.float64)))

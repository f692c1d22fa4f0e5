"""The label at the candidate itself: one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.evidence.asking import walks_along
from audits.apollo.evidence.base import KINDS, Case, Kind
from audits.apollo.evidence.parts import Walks
from audits.apollo.evidence.settings import SearchSettings


@KINDS.register("point")
@dataclass(frozen=True)
class Point(Kind):
    """Labels at x of the target and of both halves' unlearned shadows; nothing is searched."""

    settings: ClassVar[tuple[str, ...]] = ()

    def gather(self, case: Case) -> Walks:
        first, second = case.shadows
        x = case.questions.x
        nowhere = x.new_empty((len(x), 0, 0, x.shape[1]))
        nothing = np.empty((len(x), 0, 0))
        return walks_along([nowhere, nowhere], (second, first), [nothing, nothing], case)

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return 1

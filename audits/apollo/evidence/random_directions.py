"""The control of Apollo's walks: random directions at the radii that the search travelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from audits.apollo.evidence.asking import walks_along
from audits.apollo.evidence.base import KINDS, Case, Kind
from audits.apollo.evidence.parts import Walks
from audits.apollo.evidence.search import random_walk
from audits.apollo.evidence.settings import SearchSettings


@KINDS.register("random")
@dataclass(frozen=True)
class RandomWalks(Kind):
    """As many queries as Apollo, at the same distances, along directions that know nothing of any shadow."""

    after: ClassVar[tuple[str, ...]] = ("apollo",)

    def gather(self, case: Case) -> Walks:
        """Ask along random directions; the confidence is that of the shadows along Apollo's walk."""
        first, second = case.shadows
        asked, drawn = case.questions, case.earlier["apollo"]
        assert isinstance(drawn, Walks), "Apollo's evidence is walks"
        way = asked.directions()
        points = [
            random_walk(asked.x, way, torch.from_numpy(radius).to(asked.x), asked.value_range)
            for radius in drawn.radius
        ]
        return walks_along(points, (second, first), list(drawn.confidence), case)

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return 1 + 2 * 2 * settings.steps

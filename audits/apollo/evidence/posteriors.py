"""Posteriors at the candidate itself, of the shadows before and after unlearning and of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.evidence.asking import log_probabilities, target_log_probabilities
from audits.apollo.evidence.base import KINDS, Case, Kind
from audits.apollo.evidence.parts import Part, Posteriors
from audits.apollo.evidence.settings import SearchSettings


@KINDS.register("posteriors")
@dataclass(frozen=True)
class AtThePoint(Kind):
    """One posterior of the target at x; the online shadows of both halves answer beside it."""

    part: ClassVar[type[Part]] = Posteriors
    settings: ClassVar[tuple[str, ...]] = ()

    def gather(self, case: Case) -> Posteriors:
        asked, groups = case.questions, case.shadows
        return Posteriors(
            original=np.stack([log_probabilities(model, asked) for group in groups for model in group.original]),
            shadow=np.stack([log_probabilities(model, asked) for group in groups for model in group.unlearned]),
            inside=np.concatenate([group.inside for group in groups]),
            outside=np.concatenate([group.outside for group in groups]),
            target=target_log_probabilities(case.posteriors, asked),
            labels=asked.y.cpu().numpy(),
            queries=np.ones(len(asked.ids), dtype=np.int32),
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return 1

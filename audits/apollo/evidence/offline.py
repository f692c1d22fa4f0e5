"""Apollo's walks, strictly offline: drawn once by shadows that never saw a candidate, for all unlearning methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray

from audits.apollo.evidence.adversarial import drawn_by, out_confidence
from audits.apollo.evidence.asking import walks_along
from audits.apollo.evidence.base import KINDS, Case, Kind
from audits.apollo.evidence.parts import Walks
from audits.apollo.evidence.settings import SearchSettings


@KINDS.register("offline")
@dataclass(frozen=True)
class Offline(Kind):
    """The search reads original offline shadows only; their unlearned versions of the other half are pseudo-targets."""

    reads: ClassVar[tuple[str, ...]] = ("offline",)
    traced: ClassVar[bool] = True

    def trace(self, case: Case) -> dict[str, NDArray[Any]]:
        """Return ``inputs.g`` (K, 2, T, dimensions) and ``confidence.g`` (K, 2, T) of the groups g = 0, 1."""
        found: dict[str, NDArray[Any]] = {}
        for number, group in enumerate(case.offline_shadows):
            trace = drawn_by(group, case, offline=True)
            found[f"inputs.{number}"] = trace.inputs.cpu().numpy()
            found[f"confidence.{number}"] = out_confidence(trace, group.outside)
        return found

    def gather(self, case: Case) -> Walks:
        first, second = case.offline_shadows
        points = [torch.from_numpy(case.trace[f"inputs.{number}"]).to(case.questions.x) for number in (0, 1)]
        return walks_along(points, (second, first), [case.trace[f"confidence.{number}"] for number in (0, 1)], case)

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return 1 + 2 * 2 * settings.steps

"""Apollo's walks, online: drawn by shadows with and without the candidate (arXiv 2506.09923, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from audits.apollo.evidence.asking import walks_along
from audits.apollo.evidence.base import KINDS, Case, Group, Kind
from audits.apollo.evidence.parts import Walks
from audits.apollo.evidence.search import Trace, search
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Shadows
from audits.arrays import Bools, Floats


@KINDS.register("apollo")
@dataclass(frozen=True)
class Adversarial(Kind):
    """Each half's shadows search; the other half's unlearned shadows and the targets are asked along the way."""

    def gather(self, case: Case) -> Walks:
        first, second = case.shadows
        traces = [drawn_by(group, case) for group in (first, second)]
        means = [out_confidence(trace, group.outside) for trace, group in zip(traces, (first, second), strict=True)]
        return walks_along([trace.inputs for trace in traces], (second, first), means, case)

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return 1 + 2 * 2 * settings.steps


def drawn_by(group: Group, case: Case, *, offline: bool = False) -> Trace:
    """Return the walk of the shadows of ``group`` from all candidates of a case."""
    asked = case.questions
    inside, outside = (torch.from_numpy(side).to(asked.x.device) for side in (group.inside, group.outside))
    return search(
        Shadows(group.original, group.unlearned, inside, asked.shape, outside),
        asked.x,
        asked.y,
        asked.directions(),
        case.settings,
        offline=offline,
        value_range=asked.value_range,
        chunk=asked.chunk,
    )


def out_confidence(trace: Trace, outside: Bools) -> Floats:
    """Return the mean confidence (K, 2, T) over the shadows ``outside`` (m, K)."""
    weight = outside[:, :, None, None]
    found: Floats = (trace.confidence.double().cpu().numpy() * weight).sum(0) / weight.sum(0)
    return found

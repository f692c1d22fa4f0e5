"""The logit of the true class at the candidate itself: what Apollo's public reference reads for its U-LiRA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from audits.apollo.evidence.base import KINDS, Case, Kind
from audits.apollo.evidence.parts import Part
from audits.apollo.evidence.settings import SearchSettings
from audits.arrays import Bools
from audits.queries.access import Access
from audits.queries.oracles import logit_oracle


@dataclass(frozen=True)
class Logits(Part):
    """Logits of the true class at x, float32. ``original`` and ``shadow``: (m, K) of the shadows before and after
    unlearning; ``inside``: (m, K), trained on it, then unlearned it; ``outside``: (m, K), never saw it; ``target``:
    (K,) of the unlearned target; ``queries``: (K,) asked of the target."""

    access: ClassVar[Access] = "logits"
    axes: ClassVar[Mapping[str, int | None]] = {
        "original": 1,
        "shadow": 1,
        "inside": 1,
        "outside": 1,
        "target": 0,
        "queries": 0,
    }
    shadows: ClassVar[Mapping[str, int]] = {"original": 0, "shadow": 0, "inside": 0, "outside": 0}

    original: NDArray[np.float32]
    shadow: NDArray[np.float32]
    inside: Bools
    outside: Bools
    target: NDArray[np.float32]
    queries: NDArray[np.int32]


@KINDS.register("logits")
@dataclass(frozen=True)
class LogitAtThePoint(Kind):
    """One answer of the target at x, before the softmax; the online shadows of both halves answer beside it."""

    part: ClassVar[type[Part]] = Logits
    settings: ClassVar[tuple[str, ...]] = ()

    def gather(self, case: Case) -> Logits:
        asked, groups = case.questions, case.shadows
        x = asked.x.unflatten(-1, asked.shape)
        own = np.arange(len(asked.ids))
        target = np.empty(len(own), dtype=np.float32)
        for owner in np.unique(asked.owner):
            rows = np.flatnonzero(asked.owner == owner)
            target[rows] = of_true_class(case.logits[int(owner)].ask(x[rows], asked.ids[rows]), asked.y[rows])

        def shadows(original: bool) -> NDArray[np.float32]:
            models = [model for group in groups for model in (group.original if original else group.unlearned)]
            return np.stack([of_true_class(logit_oracle(model).ask(x, asked.ids), asked.y) for model in models])

        return Logits(
            original=shadows(True),
            shadow=shadows(False),
            inside=np.concatenate([group.inside for group in groups]),
            outside=np.concatenate([group.outside for group in groups]),
            target=target,
            queries=np.ones(len(own), dtype=np.int32),
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        return 1


def of_true_class(outputs: torch.Tensor, labels: torch.Tensor) -> NDArray[np.float32]:
    """Return the output (N,) of each point's true class, of ``outputs`` (N, classes) for ``labels`` (N,)."""
    return np.asarray(outputs.gather(1, labels[:, None])[:, 0].cpu().numpy(), dtype=np.float32)

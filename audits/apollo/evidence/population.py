"""Posteriors at points that no model trained on: what a candidate is compared with where none of its own kin is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from audits.apollo.evidence.asking import log_probabilities
from audits.apollo.evidence.base import KINDS, Case, Kind
from audits.apollo.evidence.parts import Part
from audits.apollo.evidence.settings import SearchSettings
from audits.arrays import Ids
from audits.queries.access import Access


@dataclass(frozen=True)
class Population(Part):
    """Log-probabilities of the true class at Z population points, float32.

    ``shadow``: (m, Z) of the unlearned online shadows, in the order of ``Posteriors.shadow``; ``target``: (T, Z) of
    the targets ``index`` (T,); ``owner``: (K,) the target that each candidate is asked of.
    """

    access: ClassVar[Access] = "posteriors"
    axes: ClassVar[Mapping[str, int | None]] = {"shadow": None, "target": None, "index": None, "owner": 0}
    shadows: ClassVar[Mapping[str, int]] = {"shadow": 0}

    shadow: NDArray[np.float32]
    target: NDArray[np.float32]
    index: Ids
    owner: Ids

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return consecutive shards as one part: each names its own candidates' targets, the whole each target once."""
        index, first = np.unique(np.concatenate([part.index for part in parts]), return_index=True)
        target = np.concatenate([part.target for part in parts])[first]
        return cls(parts[0].shadow, target, index, np.concatenate([part.owner for part in parts]))

    @property
    def queries(self) -> NDArray[np.int32]:
        """Return (K,): each candidate's share of the population queries put to its target, rounded up."""
        sharing = (self.owner[:, None] == self.owner[None]).sum(1)
        return np.asarray(-(-self.target.shape[1] // sharing), dtype=np.int32)


@KINDS.register("population")
@dataclass(frozen=True)
class OfThePopulation(Kind):
    """Every target of the candidates, and the unlearned online shadows of both halves, at the population points."""

    part: ClassVar[type[Part]] = Population
    settings: ClassVar[tuple[str, ...]] = ("population",)

    def gather(self, case: Case) -> Population:
        asked = case.asked_population
        labels = asked.y.cpu().numpy()
        points, own = asked.x.unflatten(-1, asked.shape), np.arange(len(labels))
        index = np.unique(case.questions.owner)
        answers = [case.posteriors[int(owner)].ask(points, asked.ids).cpu().numpy() for owner in index]
        models = [model for group in case.shadows for model in group.unlearned]
        return Population(
            shadow=np.stack([log_probabilities(model, asked)[own, labels] for model in models]),
            target=np.stack([answer[own, labels] for answer in answers]).astype(np.float32),
            index=index,
            owner=case.questions.owner,
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        """Return 1: a candidate's share, while there are no more population points than candidates."""
        return 1

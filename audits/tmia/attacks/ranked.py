"""The form of attacks that rank a model's statistic among the reference models' at the same point.

Each names its statistic, larger = more member-like; the p-value and the decision p ≤ beta are shared.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.signals.loss import losses
from audits.statistics.precision import Decide
from audits.tmia.answers import Answers, Grouped
from audits.tmia.attacks.base import Attack, JudgeSettings, Ruling
from audits.tmia.design import GROUPS, Group
from audits.tmia.p_values import decider, rank_p, smoothed_p
from audits.tmia.shared_pool import NO_CORRECTION, attained, check_corrected_level, corrected_p, raw_level
from audits.tmia.smoothed_decider import smoothed_decider


@dataclass(frozen=True)
class RankAttack(Attack):
    """Member if p ≤ beta, p the rank of the model's statistic among the reference models' (``p_values.rank_p``),
    corrected for the pool that these share (``shared_pool.corrected_p``).

    Where no reference model has a statistic nothing can be ranked: the candidate's statistics count as failed too.
    """

    ranked: ClassVar[bool] = True
    has_level: ClassVar[bool] = True
    p_value: ClassVar[Callable[..., Floats]] = staticmethod(rank_p)
    decide_again: ClassVar[Callable[..., Decide]] = staticmethod(decider)

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling by p ≤ beta; raises BadInput where so few reference models cannot reach beta."""
        rows, statistic, queries = self.statistics(view, settings)
        reference, targets = statistic["reference"], len(statistic["target"])
        check_corrected_level(settings.beta, len(reference), settings.pool_sets)
        known = ~np.isnan(reference).all(0)
        own = np.concatenate([statistic["target"], statistic["null"]])
        own = np.where(known, own, np.nan)
        p = np.full(own.shape, np.nan)
        p[:, known] = type(self).p_value(own[:, known], reference[:, known], larger_is_member=True)
        called = p <= raw_level(settings.beta, settings.pool_sets)
        p = corrected_p(p, settings.pool_sets)
        parts: Mapping[Group, slice] = {"target": slice(targets), "null": slice(targets, None)}
        return Ruling(
            rows=rows,
            statistic={**{group: own[part] for group, part in parts.items()}, "reference": reference},
            p={group: p[part] for group, part in parts.items()},
            decision={group: called[part] for group, part in parts.items()},
            queries=queries,
        )

    @abstractmethod
    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return the candidates spoken about (M,), the statistic (models, M) of each group, and queries a point."""

    @classmethod
    def decider(cls, statistic: Floats, reference: Floats, beta: float, pool_sets: float = NO_CORRECTION) -> Decide:
        """Return decisions by reference models taken; candidates without a reference value get none, as in ``find``."""
        known = ~np.isnan(reference).all(0)
        return cls.decide_again(
            np.where(known, statistic, np.nan), np.where(known, reference, 0.0), raw_level(beta, pool_sets),
            larger_is_member=True,
        )  # fmt: skip

    @classmethod
    def attained(cls, beta: float, n_ref: int, pool_sets: float = NO_CORRECTION) -> float | None:
        return attained(beta, n_ref, pool_sets)


@dataclass(frozen=True)
class SmoothedAttack(RankAttack):
    """Member if p ≤ beta, p from the smoothed distribution function of the reference models (``smoothed_p``)."""

    p_value: ClassVar[Callable[..., Floats]] = staticmethod(smoothed_p)
    decide_again: ClassVar[Callable[..., Decide]] = staticmethod(smoothed_decider)

    @classmethod
    def attained(cls, beta: float, n_ref: int, pool_sets: float = NO_CORRECTION) -> float | None:
        """Return None: no level is known, a smoothed p-value is not quite valid for few reference models."""
        return None


def confident(view: Answers) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
    """Return all candidates, minus the losses of true confidences, and the one query a point."""
    seen = view.known_posteriors()
    statistic: dict[Group, Floats] = {group: -losses(seen.posterior[group], seen.star[group]) for group in GROUPS}
    return np.arange(seen.posterior["target"].shape[1]), statistic, 1

"""Attacks that rank a model's statistic among the contrast models' at the same point: TMIA, PMIA and noise votes.

Each names its statistic, larger = more member-like; the p-value and the decision p ≤ beta are shared.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.data.membership import GROUPS, Group
from audits.errors import BadInput
from audits.evaluation.precision import Decide
from audits.membership.answers import Answers, Floats, Grouped, Labels
from audits.membership.attack_base import Attack, JudgeSettings, Reading, Ruling, attack
from audits.membership.p_values import decider, log_loss, rank_p, smoothed_p
from audits.membership.reconstruction import Map, Pairs, fit, make_pairs
from audits.membership.shared_pool import NO_CORRECTION, attained, check_corrected_level, corrected_p, raw_level
from audits.membership.simple import losses
from audits.membership.smoothed_decider import smoothed_decider
from audits.oracles import Access


@dataclass(frozen=True)
class RankAttack(Attack):
    """Member if p ≤ beta, p the rank of the model's statistic among the contrast models' (``p_values.rank_p``),
    corrected for the pool that these share (``shared_pool.corrected_p``).

    Where no contrast model has a statistic nothing can be ranked: the candidate's statistics count as failed too.
    """

    ranked: ClassVar[bool] = True
    has_level: ClassVar[bool] = True
    p_value: ClassVar[Callable[..., Floats]] = staticmethod(rank_p)
    decide_again: ClassVar[Callable[..., Decide]] = staticmethod(decider)

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """See ``Attack.find``; raises BadInput where so few contrast models cannot reach beta."""
        rows, statistic, queries = self.statistics(view, settings)
        contrast, targets = statistic["contrast"], len(statistic["target"])
        check_corrected_level(settings.beta, len(contrast), settings.pool_sets)
        known = ~np.isnan(contrast).all(0)
        own = np.concatenate([statistic["target"], statistic["fresh"]])
        own = np.where(known, own, np.nan)
        p = np.full(own.shape, np.nan)
        p[:, known] = type(self).p_value(own[:, known], contrast[:, known], larger_is_member=True)
        called = p <= raw_level(settings.beta, settings.pool_sets)
        p = corrected_p(p, settings.pool_sets)
        parts: Mapping[Group, slice] = {"target": slice(targets), "fresh": slice(targets, None)}
        return Ruling(
            rows=rows,
            statistic={**{group: own[part] for group, part in parts.items()}, "contrast": contrast},
            p={group: p[part] for group, part in parts.items()},
            decision={group: called[part] for group, part in parts.items()},
            queries=queries,
        )

    @abstractmethod
    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return the candidates spoken about (M,), the statistic (models, M) of each group, and queries a point."""

    @classmethod
    def decider(cls, statistic: Floats, contrast: Floats, beta: float, pool_sets: float = NO_CORRECTION) -> Decide:
        """See ``Attack.decider``; candidates without any contrast value get no decision, as in ``find``."""
        known = ~np.isnan(contrast).all(0)
        return cls.decide_again(
            np.where(known, statistic, np.nan), np.where(known, contrast, 0.0), raw_level(beta, pool_sets),
            larger_is_member=True,
        )  # fmt: skip

    @classmethod
    def attained(cls, beta: float, n_ref: int, pool_sets: float = NO_CORRECTION) -> float | None:
        """See ``Attack.attained``."""
        return attained(beta, n_ref, pool_sets)


@dataclass(frozen=True)
class SmoothedAttack(RankAttack):
    """Member if p ≤ beta, p from the smoothed distribution function of the contrast models (``smoothed_p``)."""

    p_value: ClassVar[Callable[..., Floats]] = staticmethod(smoothed_p)
    decide_again: ClassVar[Callable[..., Decide]] = staticmethod(smoothed_decider)

    @classmethod
    def attained(cls, beta: float, n_ref: int, pool_sets: float = NO_CORRECTION) -> float | None:
        """See ``Attack.attained``: none is known, a smoothed p-value is not quite valid for few contrast models."""
        return None


@attack("tmia")
@dataclass(frozen=True)
class Tmia(RankAttack):
    """TMIA: distances become confidences, whose losses are ranked (Journal on Communications 42(10), 2021).

    Deviation: one map turns the distances of targets and contrast models alike; the paper takes true confidences of the
    contrast models, against which a reconstructed one stands apart whether or not the target saw the point.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)
    reconstructs: ClassVar[bool] = True

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """See ``RankAttack.statistics``: minus the loss of the reconstructed confidence."""
        return reconstructed(view.known_labels(), settings)


@attack("tmia_smoothed")
@dataclass(frozen=True)
class TmiaSmoothed(SmoothedAttack):
    """TMIA with the smoothed p-value of PMIA, for parity with it."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)
    reconstructs: ClassVar[bool] = True

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """See ``RankAttack.statistics``: minus the loss of the reconstructed confidence."""
        return reconstructed(view.known_labels(), settings)


@attack("tmia_distance")
@dataclass(frozen=True)
class TmiaDistance(RankAttack):
    """TMIA without a map: signed distances are ranked, which leaves out the regression and its ties."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """See ``RankAttack.statistics``: the signed distance."""
        labels = view.known_labels()
        return labels.rows, labels.known("distance"), labels.queries["distance"]


@attack("tmia_posterior")
@dataclass(frozen=True)
class TmiaPosterior(RankAttack):
    """TMIA with the true confidence: the reference beside which the label-only forms are set."""

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """See ``RankAttack.statistics``: minus the loss of the true confidence."""
        return confident(view)


@attack("pmia")
@dataclass(frozen=True)
class PmiaAttack(SmoothedAttack):
    """PMIA (Long et al., EuroS&P 2020): smoothed p-value of the true loss; ``audits.membership.pmia`` says more.

    It speaks about all candidates here; the records that the paper would attack are those of the selector
    ``neighbours``.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """See ``RankAttack.statistics``: minus the loss of the true confidence."""
        return confident(view)


@attack("noise_votes")
@dataclass(frozen=True)
class NoiseVotesAttack(RankAttack):
    """Share of noisy copies that keep y*, ranked (``audits.membership.simple.NoiseVotes``); ties cost power."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("votes",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """See ``RankAttack.statistics``: the share of copies."""
        labels = view.known_labels()
        return labels.rows, labels.known("votes"), labels.queries["votes"]


def fitted_pairs(labels: Labels, settings: JudgeSettings) -> Pairs:
    """Return the pairs of distance and confidence to which the map is fitted; BadInput where they are missing.

    Of source "paper" with distances (T, P) of several targets, the pairs of all are taken together: there is one map.
    """
    if labels.fit_distance is None or labels.fit_confidence is None or labels.fit_points is None:
        raise BadInput("no points were gathered to which confidence reconstruction could be fitted; use tmia_distance")
    confidence, points, ids = labels.fit_confidence, labels.fit_points, labels.candidates
    if settings.pairs != "paper" or labels.fit_distance.ndim != 2:
        return make_pairs(settings.pairs, labels.fit_distance, confidence, points, ids)
    every = [make_pairs("paper", own, confidence, points, ids) for own in labels.fit_distance]
    return Pairs(
        np.concatenate([each.distance for each in every]),
        np.concatenate([each.confidence for each in every]),
        sum(each.dropped for each in every),
        "paper",
    )


def fitted_map(labels: Labels, settings: JudgeSettings) -> Map:
    """Return the map from distance to confidence that ``tmia`` and ``tmia_smoothed`` use."""
    return fit(settings.map, fitted_pairs(labels, settings), settings.degree)


def reconstructed(labels: Labels, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
    """Return rows, minus the losses of reconstructed confidences, and queries a point."""
    found, distance = fitted_map(labels, settings), labels.known("distance")
    statistic: dict[Group, Floats] = {group: -log_loss(found.predict(distance[group])) for group in GROUPS}
    return labels.rows, statistic, labels.queries["distance"]


def confident(view: Answers) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
    """Return all candidates, minus the losses of true confidences, and the one query a point."""
    seen = view.known_posteriors()
    statistic: dict[Group, Floats] = {group: -losses(seen.posterior[group], seen.star[group]) for group in GROUPS}
    return np.arange(seen.posterior["target"].shape[1]), statistic, 1

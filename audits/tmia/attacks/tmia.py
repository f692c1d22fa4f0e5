"""TMIA: losses of confidences that are reconstructed from distances to the boundary, ranked among reference models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.queries.access import Access
from audits.signals.loss import log_loss
from audits.tmia.answers import Answers, Grouped, Labels
from audits.tmia.attacks.base import ATTACKS, JudgeSettings, Reading
from audits.tmia.attacks.ranked import RankAttack, SmoothedAttack
from audits.tmia.design import GROUPS, Group
from audits.tmia.reconstruction import Map, Pairs, fit, make_pairs


@ATTACKS.register("tmia")
@dataclass(frozen=True)
class Tmia(RankAttack):
    """TMIA: distances become confidences, whose losses are ranked (Journal on Communications 42(10), 2021).

    Deviation: one map turns the distances of targets and reference models alike; the paper takes true confidences of
    the reference models, against which a reconstructed one stands apart whether or not the target saw the point.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)
    reconstructs: ClassVar[bool] = True

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, minus the losses of reconstructed confidences, and queries a point."""
        return reconstructed(view.known_labels(), settings)


@ATTACKS.register("tmia_smoothed")
@dataclass(frozen=True)
class TmiaSmoothed(SmoothedAttack):
    """TMIA with the smoothed p-value of PMIA, for parity with it."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("distance",)
    reconstructs: ClassVar[bool] = True

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, minus the losses of reconstructed confidences, and queries a point."""
        return reconstructed(view.known_labels(), settings)


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

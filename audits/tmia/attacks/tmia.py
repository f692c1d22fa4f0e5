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

    Score: minus −log p̂, p̂ the confidence of y* that a map (``audit.reconstruction``) makes of the signed distance to
    the decision boundary. p = (1 + #{L_i ≤ L})/(n_ref + 1), the rank of the target's loss among those of the reference
    models, corrected for the pool that these share. Member if p ≤ beta.

    Source: Chen et al., Journal on Communications 42(10), 2021, sections on confidence reconstruction and hypothesis
    test; the distance is HopSkipJump's (arXiv 1904.02144).

    Deviations: one map turns the distances of targets and reference models alike; the paper takes true confidences of
    the reference models, against which a reconstructed one stands apart whether or not the target saw the point. p is
    never 0, and is corrected for the shared pool.

    Cost: 316 labels a candidate and model at schedule ``rank``; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: recorded answers, since the search asks about inputs of its own making. The map is monotone, so
    ``tmia_distance`` decides alike without its points and its ties.
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
    """TMIA with the smoothed p-value of PMIA, for parity with it.

    Score: as ``tmia``, with p from the smoothed distribution function of the reference models' losses.

    Source: Chen et al., Journal on Communications 42(10), 2021; the smoothing is that of PMIA (Long et al., EuroS&P
    2020).

    Deviations: as ``tmia``; the smoothed function does not extrapolate and is never below 1/(n_ref + 1).

    Cost: nothing beside ``tmia``, whose distances it reads.

    Not for: an exact level: the rank of ``tmia`` keeps one, a smoothed p-value does so nearly.
    """

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

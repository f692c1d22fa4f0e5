"""Attacks without some of their reference models: the other draws of them that an interval allows for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Ids
from audits.tmia.answers import Answers, Labels, Posteriors, WhiteBox
from audits.tmia.attacks.base import Attack, JudgeSettings, Ruling
from audits.tmia.shared_pool import NO_CORRECTION, smallest

GROUPS = 10
"""Groups of reference models, one of which is left out at a time."""


def kept_in_turn(n_ref: int) -> list[Ids]:
    """Return the reference models that are left without each of up to ``GROUPS`` groups; none for a single model.

    Groups take every tenth model, so that attacks that learn from the first few lose one of these at a time.
    """
    groups = np.arange(n_ref) % min(GROUPS, n_ref)
    return [np.flatnonzero(groups != group) for group in range(min(GROUPS, n_ref))] if n_ref > 1 else []


def judge_without(attack: type[Attack], answers: Answers, settings: JudgeSettings, seed: int, kept: Ids) -> Ruling:
    """Return the ruling of an attack that has the reference models ``kept`` alone.

    A rank among so few that none of them reaches β is tested at the smallest level that they reach.
    """
    if attack.ranked:
        few = 1 / (len(kept) + 1) if settings.pool_sets == NO_CORRECTION else smallest(len(kept), settings.pool_sets)
        settings = replace(settings, beta=max(settings.beta, few))
    return attack().judge(with_models(answers, kept), settings, seed)


def with_models(answers: Answers, kept: Ids) -> Answers:
    """Return the answers of all targets and null models, and of the reference models ``kept``."""
    labels, posteriors, white_box = answers.labels, answers.posteriors, answers.white_box
    return replace(
        answers,
        labels=None if labels is None else labels_of(labels, kept),
        posteriors=None if posteriors is None else posteriors_of(posteriors, kept),
        white_box=None if white_box is None else white_box_of(white_box, kept),
    )


def labels_of(seen: Labels, kept: Ids) -> Labels:
    """Return what was asked with labels only; pairs of a fit are of the first reference models, or of targets."""
    parts: dict[str, Any] = {
        name: grouped(getattr(seen, name), kept)
        for name in ("predicted", "star", "distance", "votes")
        if getattr(seen, name) is not None
    }
    confidence, distance = seen.fit_confidence, seen.fit_distance
    if confidence is not None:
        first = kept[kept < len(confidence)]
        if distance is not None and distance.shape == confidence.shape:
            parts["fit_distance"] = distance[first]
        parts["fit_confidence"] = confidence[first]
    return replace(seen, **parts)


def posteriors_of(seen: Posteriors, kept: Ids) -> Posteriors:
    """Return the posteriors, those of other reference models left out."""
    return replace(
        seen,
        posterior=grouped(seen.posterior, kept),
        star=grouped(seen.star, kept),
        shadow_posterior=seen.shadow_posterior[kept],
        shadow_member=seen.shadow_member[kept],
        shadow_star=seen.shadow_star[kept],
    )


def white_box_of(seen: WhiteBox, kept: Ids) -> WhiteBox:
    """Return what the weights show, those of other reference models left out; the first few are looked into."""
    first = kept[kept < len(seen.shadow_member)]
    return replace(
        seen,
        shadow_features=seen.shadow_features[first],
        shadow_displacement=seen.shadow_displacement[first],
        shadow_member=seen.shadow_member[first],
    )


def grouped(given: Any, kept: Ids) -> dict[Any, NDArray[Any]]:
    """Return one array a group, that of reference models cut down to ``kept``."""
    return {**given, "reference": given["reference"][kept]}

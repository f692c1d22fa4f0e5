"""Answers of made-up models with a known truth: members are surer of their class by ``lift`` logits, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from audits.tmia.answers import Answers, Labels, Posteriors, WhiteBox
from audits.tmia.design import GROUPS

SLOPE, COPIES = 2.0, 32


@dataclass(frozen=True)
class Scene:
    """``answers`` of all models; ``membership`` (T, K), ``point_ids``, ``label``, ``asked`` and ``hard`` (K,): half of
    the candidates, which models that did not train on them mostly get wrong."""

    answers: Answers
    membership: NDArray[np.bool_]
    point_ids: NDArray[np.int64]
    label: NDArray[np.int64]
    asked: NDArray[np.bool_]
    hard: NDArray[np.bool_]


def synthetic_answers(
    seed: int,
    targets: int = 6,
    reference: int = 40,
    null: int = 8,
    candidates: int = 60,
    classes: int = 3,
    *,
    lift: float = 2.0,
    star: str = "true",
    asked: int | None = None,
    samples: int = 200,
    failed: float = 0.0,
    pairs: str = "reference",
) -> Scene:
    """Return answers whose distances are logit margins over ``SLOPE``; ``star`` "true" or "own".

    The first ``asked`` candidates of a random order (all if None) are asked label-only; a share ``failed`` of distances
    is NaN. Without ``lift`` all groups are exchangeable.
    """
    rng = np.random.default_rng(seed)
    counts = {"target": targets, "reference": reference, "null": null}
    label, hard = rng.integers(classes, size=candidates), rng.permutation(candidates) < candidates // 2
    pair = np.stack([rng.permutation(candidates) < candidates // 2 for _ in range(-(-targets // 2))])
    membership = np.stack([pair, ~pair], axis=1).reshape(-1, candidates)[:targets]
    level = np.where(hard, -1.5, 2.5) + rng.normal(scale=0.5, size=candidates)
    logit = {}
    for group in GROUPS:
        member = membership if group == "target" else np.zeros((counts[group], candidates), bool)
        logit[group] = made(rng, np.broadcast_to(label, member.shape), level + lift * member, classes)
    stars = {group: starred(logit[group], label, star) for group in GROUPS}
    rows = rng.permutation(candidates)[: candidates if asked is None else asked]

    drawn = rng.random((reference, samples)) < 0.2
    sample_label = rng.integers(classes, size=samples)
    sample = made(rng, np.broadcast_to(sample_label, drawn.shape), 1.0 + lift * drawn, classes)
    fit_label = rng.integers(classes, size=12)
    fit = made(rng, np.broadcast_to(fit_label, (10, 12)), rng.normal(1.0, 2.0, size=12), classes)
    fit_star = starred(fit, fit_label, star)
    fit_distance = signed(fit, fit_star)

    distance = {group: signed(logit[group], stars[group])[:, rows] for group in GROUPS}
    for values in distance.values():
        values[rng.random(values.shape) < failed] = np.nan
    labels = Labels(
        rows=rows,
        predicted={group: logit[group].argmax(-1)[:, rows] for group in GROUPS},
        star={group: stars[group][:, rows] for group in GROUPS},
        label=label,
        candidates=np.arange(candidates) * 3 + 100,
        queries={"distance": 316, "votes": COPIES},
        distance=distance,
        votes={group: np.round(COPIES * ndtr(distance[group])) / COPIES for group in GROUPS},
        fit_distance=fit_distance if pairs == "reference" else fit_distance[:1],
        fit_confidence=confidence(fit, fit_star),
        fit_points=np.arange(12) * 3 + 1,
    )
    posteriors = Posteriors(
        posterior={group: softmax(logit[group], axis=-1).astype(np.float32) for group in GROUPS},
        star=stars,
        shadow_posterior=softmax(sample, axis=-1).astype(np.float32),
        shadow_member=drawn,
        shadow_star=starred(sample, sample_label, star),
    )
    given = np.zeros(candidates, bool)
    given[rows] = True
    white_box = looks(np.random.default_rng(seed + 1), membership, null, drawn[:10], lift)
    return Scene(Answers(labels, posteriors, membership, white_box), membership, labels.candidates, label, given, hard)


def looks(rng: np.random.Generator, member: NDArray[Any], null: int, drawn: NDArray[Any], lift: float) -> WhiteBox:
    """Return four features, the first of which ``lift`` lowers for members, and a displacement that it raises."""

    def seen(own: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        features = rng.normal(size=(*own.shape, 4))
        features[..., 0] -= lift * own
        return features.astype(np.float32), rng.normal(size=own.shape) + lift * own

    groups: dict[Any, Any] = {"target": seen(member), "null": seen(np.zeros((null, member.shape[1]), bool))}
    features, displaced = ({group: found[part] for group, found in groups.items()} for part in (0, 1))
    return WhiteBox(features, displaced, *seen(drawn), drawn)


def made(rng: np.random.Generator, label: NDArray[Any], margin: NDArray[Any], classes: int) -> NDArray[Any]:
    """Return logits (models, N, classes) with noise; ``margin`` (models, N) or (N,) is added at ``label``."""
    logit: NDArray[Any] = rng.normal(scale=0.7, size=(*label.shape, classes))
    found: NDArray[Any] = (
        logit + (np.arange(classes) == label[..., None]) * np.broadcast_to(margin, label.shape)[..., None]
    )
    return found


def starred(logit: NDArray[Any], label: NDArray[Any], star: str) -> NDArray[Any]:
    return np.broadcast_to(label, logit.shape[:-1]).copy() if star == "true" else logit.argmax(-1)


def confidence(logit: NDArray[Any], star: NDArray[Any]) -> NDArray[Any]:
    return np.take_along_axis(softmax(logit, axis=-1), star[..., None], axis=-1)[..., 0]


def signed(logit: NDArray[Any], star: NDArray[Any]) -> NDArray[Any]:
    """Return the margin of y* over the best other class, over ``SLOPE``: positive where y* is predicted."""
    own = np.take_along_axis(logit, star[..., None], axis=-1)[..., 0]
    rest = np.where(np.arange(logit.shape[-1]) == star[..., None], -np.inf, logit).max(-1)
    found: NDArray[Any] = (own - rest) / SLOPE
    return found

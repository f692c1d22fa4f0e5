"""Evidence made of synthetic answers, with a known effect of membership: nothing is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.attacks.evidence import Evidence, Posteriors, Walks


def balanced(rng: np.random.Generator, models: int, candidates: int) -> NDArray[np.bool_]:
    """Return (models, candidates) membership with half of the models inside for every candidate."""
    return np.stack([rng.permuted(np.arange(models) < models // 2) for _ in range(candidates)], axis=1)


def make_walks(
    rng: np.random.Generator,
    forgotten: NDArray[np.bool_],
    *,
    models: int = 4,
    steps: int = 3,
    effect: float = 1.0,
    noise: float = 0.3,
    offline: bool = False,
) -> Walks:
    """Return walks of ``models`` pseudo-targets a group: a model answers the true label where its margin is positive.

    Margin = difficulty of the point + ``effect`` if the model had seen it + a draw of the model − the path's slope at
    that query + ``noise`` per query. UNDER makes the label harder from step to step, OVER easier. With ``effect=0``
    members and others have the same distribution. ``offline``: no pseudo-target has seen any candidate.
    """
    candidates = len(forgotten)
    difficulty = rng.normal(1.0, 1.5, candidates)
    path = np.cumsum(rng.uniform(0.2, 0.8, (2, candidates, 2, steps)), axis=-1) * np.array([1.0, -1.0])[:, None]
    inside = np.stack([balanced(rng, models, candidates) for _ in range(2)]) & (not offline)

    def answers(margin: NDArray[np.float64], walk: int) -> NDArray[np.bool_]:
        hard = np.concatenate([np.zeros((candidates, 1)), path[walk].reshape(candidates, -1)], axis=1)
        drift = margin[..., None] - hard
        return drift + noise * rng.normal(size=drift.shape) > 0

    pseudo = np.stack(
        [answers(difficulty + effect * side + rng.normal(size=side.shape), walk) for walk, side in enumerate(inside)]
    )
    margin = difficulty + effect * forgotten + rng.normal(size=candidates)
    target = np.stack([answers(margin, walk) for walk in range(2)])
    target[1, :, 0] = target[0, :, 0]
    confidence = 1 / (1 + np.exp(path - difficulty[:, None, None]))
    return Walks(pseudo, inside, target, confidence, np.abs(path), np.full(candidates, 1 + 4 * steps, dtype=np.int32))


def make_posteriors(
    rng: np.random.Generator, forgotten: NDArray[np.bool_], *, models: int = 8, effect: float = 1.0
) -> Posteriors:
    """Return logit-scaled confidences of ``models`` shadows and the target, shifted by ``effect`` for members."""
    inside = balanced(rng, models, len(forgotten))
    difficulty = rng.normal(1.0, 1.5, len(forgotten))
    shadow = difficulty + effect * inside + rng.normal(size=inside.shape)
    target = difficulty + effect * forgotten + rng.normal(size=len(forgotten))
    return Posteriors(shadow, inside, target, np.ones(len(forgotten), dtype=np.int32))


def make_evidence(
    seed: int, candidates: int = 40, *, models: int = 4, steps: int = 3, effect: float = 1.0
) -> tuple[Evidence, NDArray[np.bool_]]:
    """Return evidence about ``candidates`` points and the truth, half of them forgotten."""
    rng = np.random.default_rng(seed)
    forgotten = rng.permuted(np.arange(candidates) < candidates // 2)
    walks = {
        kind: make_walks(rng, forgotten, models=models, steps=steps, effect=effect) for kind in ("apollo", "random")
    }
    offline = make_walks(rng, forgotten, models=models, steps=steps, effect=effect, offline=True)
    return Evidence(walks, offline, make_posteriors(rng, forgotten, models=2 * models, effect=effect)), forgotten


def auc(score: NDArray[np.float64], forgotten: NDArray[np.bool_]) -> float:
    """Return the share of pairs (forgotten, unseen) in the right order, ties counting one half."""
    high, low = score[forgotten][:, None], score[~forgotten][None]
    return float(((high > low) + 0.5 * (high == low)).mean())

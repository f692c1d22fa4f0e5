"""Walks of made-up models, with a known effect of membership: nothing is trained."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.apollo.evidence.parts import Walks

Bools = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """``models`` of a half; ``steps`` of a walk; ``effect`` of membership; ``kept``: some never forgot a candidate."""

    models: int = 4
    steps: int = 3
    effect: float = 1.0
    kept: bool = False


def balanced(rng: np.random.Generator, models: int, candidates: int) -> Bools:
    """Return (models, candidates) membership with half of the models inside for every candidate."""
    return np.stack([rng.permuted(np.arange(models) < models // 2) for _ in range(candidates)], axis=1)


def sides(rng: np.random.Generator, models: int, candidates: int, kept: bool) -> tuple[Bools, Bools, Bools]:
    """Return who trained on a candidate, who of them forgot it, who never saw it: (2, models, candidates) each."""
    trained = np.stack([balanced(rng, models, candidates) for _ in range(2)])
    rank = np.cumsum(trained, axis=1)
    return trained, trained & ((rank % 2 == 1) | (not kept)), ~trained


def make_walks(
    rng: np.random.Generator,
    forgotten: Bools,
    *,
    models: int = 4,
    steps: int = 3,
    effect: float = 1.0,
    noise: float = 0.3,
    offline: bool = False,
    directions: int = 2,
    kept: bool = False,
) -> Walks:
    """Return walks of ``models`` pseudo-targets a group: a model answers the true label where its margin is positive.

    Margin = difficulty of the point + ``effect`` if the model had seen it + a draw of the model − the path's slope at
    that query + ``noise`` per query. UNDER makes the label harder from step to step, OVER easier. With ``effect=0``
    members and others have the same distribution. ``offline``: no pseudo-target has seen any candidate; ``directions``
    0: the label at x alone; ``kept``: half of the pseudo-targets that trained on a candidate did not forget it.
    """
    candidates = len(forgotten)
    difficulty = rng.normal(1.0, 1.5, candidates)
    slope = np.array([1.0, -1.0])[:directions, None]
    path = np.cumsum(rng.uniform(0.2, 0.8, (2, candidates, directions, steps)), axis=-1) * slope
    trained, inside, outside = sides(rng, models, candidates, kept)
    if offline:
        trained, inside, outside = trained & False, inside & False, outside | True

    def answers(margin: NDArray[np.float64], walk: int) -> Bools:
        hard = np.concatenate([np.zeros((candidates, 1)), path[walk].reshape(candidates, -1)], axis=1)
        drift = margin[..., None] - hard
        found: Bools = drift + noise * rng.normal(size=drift.shape) > 0
        return found

    pseudo = np.stack(
        [answers(difficulty + effect * side + rng.normal(size=side.shape), walk) for walk, side in enumerate(trained)]
    )
    margin = difficulty + effect * forgotten + rng.normal(size=candidates)
    target = np.stack([answers(margin, walk) for walk in range(2)])
    target[1, :, 0] = target[0, :, 0]
    confidence = 1 / (1 + np.exp(path - difficulty[:, None, None]))
    queries = np.full(candidates, 1 + 2 * directions * steps, dtype=np.int32)
    return Walks(pseudo, inside, outside, target, confidence, np.abs(path), queries)


def walks_of(rng: np.random.Generator, forgotten: Bools, recipe: Recipe, **more: Any) -> Walks:
    """Return walks as ``recipe`` says."""
    return make_walks(
        rng,
        forgotten,
        models=recipe.models,
        steps=recipe.steps,
        effect=recipe.effect,
        kept=recipe.kept,
        **more,
    )


def one_query(rng: np.random.Generator, forgotten: Bools, recipe: Recipe, *, offline: bool = False) -> Walks:
    """Return walks of a single query each, not at x."""
    found = walks_of(rng, forgotten, dataclasses.replace(recipe, steps=1), directions=1, offline=offline)
    return dataclasses.replace(
        found, pseudo=found.pseudo[..., 1:], target=found.target[..., 1:], queries=np.full_like(found.queries, 2)
    )

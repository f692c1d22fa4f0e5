"""Evidence made of synthetic answers, with a known effect of membership: nothing is trained.

``MAKERS`` holds a maker for every type of part; ``OWN_MAKERS`` one for each kind whose part needs another than its
type's. A new kind of evidence is a line in one of them.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.apollo.evidence import KINDS, Evidence, Part, Posteriors, Walks
from audits.apollo.evidence.boundary import Distances
from audits.apollo.evidence.ladder import Positions
from audits.apollo.evidence.logits import Logits
from audits.apollo.evidence.plus import Standings
from audits.apollo.evidence.population import Population
from audits.conformance.apollo_walks import Recipe, one_query, sides, walks_of

Bools = NDArray[np.bool_]
CLASSES = 4
POPULATION = 30


Maker = Callable[[np.random.Generator, Bools, Recipe], Part]


def make_posteriors(
    rng: np.random.Generator, forgotten: Bools, *, models: int = 8, effect: float = 1.0, kept: bool = False
) -> Posteriors:
    """Return log-probabilities of ``models`` shadows and the target whose log-odds of the true class are normal.

    Log-odds = difficulty of the point + ``effect`` if the model had seen it (twice that before unlearning) + a draw of
    the model. The other classes share the rest in proportions that belong to the point.
    """
    trained, inside, outside = (np.concatenate(each) for each in sides(rng, models // 2, len(forgotten), kept))
    difficulty = rng.normal(1.0, 1.5, len(forgotten))
    labels = rng.integers(0, CLASSES, len(forgotten))
    shares = rng.dirichlet(np.ones(CLASSES - 1), len(forgotten))

    def answers(seen: Bools, size: float) -> NDArray[np.float32]:
        return with_odds(difficulty + size * seen + rng.normal(size=seen.shape), labels, shares)

    return Posteriors(
        original=answers(trained, 2 * effect),
        shadow=answers(trained, effect),
        inside=inside,
        outside=outside,
        target=answers(forgotten, effect),
        labels=labels,
        queries=np.ones(len(forgotten), dtype=np.int32),
    )


def with_odds(odds: NDArray[np.float64], labels: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return log-probabilities (…, K, classes) whose log p/(1 − p) of the true class is ``odds`` (…, K)."""
    found = np.empty((*odds.shape, shares.shape[1] + 1))
    for k, label in enumerate(labels):
        found[..., k, label] = -np.logaddexp(0, -odds[..., k])
        rest = -np.logaddexp(0, odds[..., k])
        found[..., k, np.arange(shares.shape[1] + 1) != label] = rest[..., None] + np.log(shares[k])
    return found.astype(np.float32)


def make_logits(rng: np.random.Generator, forgotten: Bools, recipe: Recipe) -> Logits:
    """Return logits of the true class, shifted by ``effect`` for members; twice that before unlearning."""
    halves = sides(rng, recipe.models, len(forgotten), recipe.kept)
    trained, inside, outside = (np.concatenate(each) for each in halves)
    difficulty = rng.normal(3.0, 1.5, len(forgotten))
    shadow, original = (
        difficulty + size * recipe.effect * trained + rng.normal(size=trained.shape) for size in (1.0, 2.0)
    )
    target: NDArray[Any] = difficulty + recipe.effect * forgotten + rng.normal(size=len(forgotten))
    queries = np.ones(len(forgotten), dtype=np.int32)
    before, after = original.astype(np.float32), shadow.astype(np.float32)
    return Logits(before, after, inside, outside, target, queries)


def make_population(rng: np.random.Generator, forgotten: Bools, recipe: Recipe) -> Population:
    """Return log-probabilities of the true class at points that nobody saw, of all shadows and of one target."""
    difficulty = rng.normal(1.0, 1.5, POPULATION)
    odds = difficulty + rng.normal(size=(2 * recipe.models + 1, POPULATION))
    answers = -np.logaddexp(0, -odds).astype(np.float32)
    return Population(answers[:-1], answers[-1:], np.zeros(1, np.int64), np.zeros(len(forgotten), np.int64))


def posteriors_of(rng: np.random.Generator, forgotten: Bools, recipe: Recipe) -> Posteriors:
    """Return posteriors as ``recipe`` says."""
    return make_posteriors(rng, forgotten, models=2 * recipe.models, effect=recipe.effect, kept=recipe.kept)


def make_distances(rng: np.random.Generator, forgotten: Bools, recipe: Recipe) -> Distances:
    """Return signed distances, longer by ``effect`` where a model had seen the point; one walk found no other side."""
    halves = sides(rng, recipe.models, len(forgotten), recipe.kept)
    trained, inside, outside = (np.concatenate(each) for each in halves)
    difficulty = rng.normal(1.0, 1.5, len(forgotten))
    pseudo = difficulty + recipe.effect * trained + rng.normal(size=trained.shape)
    target = difficulty + recipe.effect * forgotten + rng.normal(size=len(forgotten))
    pseudo[0, 0], queries = np.inf, np.full(len(forgotten), 21, dtype=np.int32)
    return Distances(pseudo, inside, outside, target, queries)


def make_standings(rng: np.random.Generator, forgotten: Bools, recipe: Recipe) -> Standings:
    """Return standings on five ladders of three rungs, higher by ``effect`` where a model had seen the point."""
    trained, inside, outside = sides(rng, recipe.models, len(forgotten), recipe.kept)
    difficulty = rng.normal(1.5, 0.7, (len(forgotten), 1))

    def standing(seen: NDArray[Any]) -> NDArray[np.int16]:
        noise = 0.7 * rng.normal(size=(*seen.shape, 5)) + 0.5 * rng.normal(size=(*seen.shape, 1))
        return np.clip(np.rint(difficulty + recipe.effect * seen[..., None] + noise), 0, 3).astype(np.int16)

    target = np.stack([standing(forgotten), standing(forgotten)])
    return Standings(standing(trained), inside, outside, target, np.full(len(forgotten), 20, dtype=np.int32))


def make_positions(rng: np.random.Generator, forgotten: Bools, recipe: Recipe) -> Positions:
    """Return positions on a path of nine levels, farther down by ``effect`` where a model had seen the point."""
    halves = sides(rng, recipe.models, len(forgotten), recipe.kept)
    trained, inside, outside = (np.concatenate(each) for each in halves)
    difficulty = rng.normal(4.5, 1.5, len(forgotten))

    def position(seen: Bools) -> NDArray[np.int16]:
        return np.clip(np.rint(difficulty + recipe.effect * seen + rng.normal(size=seen.shape)), 0, 9).astype(np.int16)

    apart = np.repeat([False, True], recipe.models)
    queries = np.full(len(forgotten), 4, dtype=np.int32)
    return Positions(position(trained), inside, outside, apart, position(forgotten), queries)


MAKERS: dict[type[Part], Maker] = {
    Positions: make_positions,
    Standings: make_standings,
    Walks: walks_of,
    Posteriors: posteriors_of,
    Logits: make_logits,
    Population: make_population,
    Distances: make_distances,
}
OWN_MAKERS: dict[str, Maker] = {
    "offline": functools.partial(walks_of, offline=True),
    "point": functools.partial(walks_of, directions=0),
    "yoqo": one_query,
    "oslo": functools.partial(one_query, offline=True),
}


def make_evidence(
    seed: int,
    candidates: int = 40,
    *,
    models: int = 4,
    steps: int = 3,
    effect: float = 1.0,
    kept: bool = False,
    kinds: Iterable[str] | None = None,
) -> tuple[Evidence, Bools]:
    """Return evidence of ``kinds`` (default: all) about ``candidates`` points and the truth, half of them forgotten.

    The answers of a kind depend on the seed and its name, not on which other kinds there are.
    """
    forgotten = np.random.default_rng(seed).permuted(np.arange(candidates) < candidates // 2)
    recipe = Recipe(models, steps, effect, kept)
    parts = {}
    for kind in KINDS if kinds is None else kinds:
        maker = OWN_MAKERS.get(kind) or MAKERS[KINDS[kind].part]
        parts[kind] = maker(np.random.default_rng([seed, zlib.crc32(kind.encode())]), forgotten, recipe)
    return Evidence(parts, forgotten), forgotten

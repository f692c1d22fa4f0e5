"""Memorisation of points, measured on a population of models of its own, and candidates drawn by it.

Memorisation of a point: mean confidence in its label over models that trained on it, minus the mean over models that
did not (Feldman and Zhang, "What Neural Networks Memorize and Why", 2020). Random points understate what unlearning
leaves behind for such points (Naderloui et al., RULI, arXiv 2506.13009).

Candidates of every group come from the top of one common ranked pool and are dealt to the groups at random. Were only
the forgotten ones memorised and the never-seen ones typical, they could be told apart without looking at the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.apollo.design.forget_sets import Fixed
from audits.apollo.design.population import NONE, Member
from audits.apollo.design.split import Split
from audits.arrays import Ids
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator

WANTED_MODELS = 3  # that hold a point; the many that do not hold it settle the noisier mean
FEWEST_MODELS = 2


@dataclass(frozen=True)
class Deal:
    """Ranked candidates of each target: ``fixed`` (to train on), ``unseen``; ``rest``: points left to train on."""

    fixed: tuple[Fixed, ...]
    unseen: tuple[Ids, ...]
    rest: Ids


def ranked_size(split: Split) -> int:
    """Return how many points are ranked: all of pool (a) and the never-seen share of (c), unless they are too many.

    R models of n points hold a point of a pool of N in R·n/N of them. The pool is cut so that each point is in 3 models
    or more, and never below 2·n, so that each is also outside of half of them. It is as large as twice the candidates
    where each point is still in 2 models, since taking nearly all of a pool chooses nothing. A wide pool beats exact
    scores: on fashion14 (mlp, n = 500, R = 32) scores agree with those of 110 other models equally well for N = 2000
    (in 8 models) and N = 4400 (in 3.6), r = .94, while the 800 points on top have a mean memorisation of .37 and .54
    (all points: .17).
    Raises ``BadInput``.
    """
    asked, size, models = split.targets * split.candidates_per_target, split.train_size, split.ranking_models
    if models < 2 * FEWEST_MODELS:
        raise BadInput(
            f"split.ranking_models is {models}; use {2 * FEWEST_MODELS} or more, so that each point is in "
            f"{FEWEST_MODELS} of them and outside of {FEWEST_MODELS}"
        )
    available = split.target_pool + split.targets * split.candidates_unseen
    wanted = max(2 * size, models * size // WANTED_MODELS, min(2 * asked, models * size // FEWEST_MODELS))
    pool = min(available, wanted)
    if pool < 2 * size:
        raise BadInput(
            f"split.points is memorised: {available} points can be ranked, but models that train on {size} need "
            f"{2 * size}, to leave each point out half of the time; raise split.target_pool by {2 * size - available}"
        )
    if asked > pool:
        raise BadInput(
            f"split.points is memorised: {asked} candidates (all targets together) are more than the {pool} points "
            "that are ranked; raise split.ranking_models and split.target_pool, or ask about fewer points"
        )
    drawn = size - split.candidates_forget - split.candidates_retained
    if available - asked < drawn:
        raise BadInput(
            f"split.points is memorised: beside the candidates {available - asked} points are left to train on, but a "
            f"target needs {drawn}; raise split.target_pool"
        )
    return pool


def available_points(target_pool: Ids, test_pool: Ids, split: Split) -> Ids:
    """Return the points that targets may train on or be asked about; the first ``ranked_size`` of them are ranked."""
    return np.concatenate([target_pool, test_pool[: split.targets * split.candidates_unseen]])


def draw_ranking(ranked: Ids, split: Split, seed: int) -> tuple[Member, ...]:
    """Return the ranking population: each model takes the points that were taken least so far, ties at random.

    So the numbers of models that two points are in differ by at most 1; with a pool of 2·n they come in
    complementary pairs.
    """
    taken = np.zeros(len(ranked), np.int64)
    members = []
    for index in range(split.ranking_models):
        rng = numpy_generator(derive_seed(seed, Purpose.RANKING, index))
        rows = np.lexsort((rng.random(len(ranked)), taken))[: split.train_size]
        taken[rows] += 1
        members.append(Member(f"ranking-{index:03d}", "ranking", -1, 0, index, ranked[rng.permutation(rows)], NONE))
    return tuple(members)


def memorisation(confidence: NDArray[np.float64], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return (N,) mean confidence over models that trained on a point, minus that over the others.

    ``confidence`` (R, N): each model's probability of the point's own label; ``inside`` (R, N): the membership matrix.
    NaN for a point that is in all models or in none. Raises ValueError when the shapes differ.
    """
    if confidence.shape != inside.shape:
        raise ValueError(f"confidence {confidence.shape} and inside {inside.shape} differ in shape")
    within, without = inside.sum(0), (~inside).sum(0)
    both = (within > 0) & (without > 0)
    gap = np.where(inside, confidence, 0.0).sum(0) / np.maximum(within, 1)
    gap = gap - np.where(inside, 0.0, confidence).sum(0) / np.maximum(without, 1)
    return np.where(both, gap, np.nan)


def deal_memorised(available: Ids, ranking: NDArray[np.float64], split: Split, seed: int) -> Deal:
    """Return the most memorised of the ``available`` points, dealt at random to targets and groups.

    ``ranking``: (points of the data set,) scores, NaN where not ranked; the same number goes to every target. Raises
    ``BadInput`` when fewer points are ranked than are asked about.
    """
    scores = ranking[available]
    order = np.argsort(np.where(np.isnan(scores), -np.inf, scores), kind="stable")[::-1]
    each = split.candidates_per_target
    needed, known = split.targets * each, int((~np.isnan(scores)).sum())
    if known < needed:
        raise BadInput(f"split.points is memorised: {known} points are ranked, {needed} candidates are needed")
    top = available[order[:needed]]
    hands = numpy_generator(derive_seed(seed, Purpose.MEMORISED)).permutation(top).reshape(split.targets, each)
    cuts = [split.candidates_forget, split.candidates_forget + split.candidates_unseen]
    parts = [np.split(hand, cuts) for hand in hands]
    return Deal(
        tuple(Fixed(forget, retained) for forget, _, retained in parts),
        tuple(unseen for _, unseen, _ in parts),
        available[~np.isin(available, top)],
    )

"""Exposure of points by the training of a few models, and candidates drawn by it: a ranking without a population.

Memorisation (``audits.apollo.design.memorisation``) compares models with and without a point, which takes many of
them. Here the pool is cut into disjoint training sets, one model is watched on each, and a point's exposure is its
place among the points of its own model by Σ ½·log2(1 + GNQ) along training (``audits.uniqueness``): known before any
shadow is trained. Places, since sums of different models need not share a scale.

Candidates of every group come from the top of that one pool and are dealt at random, as memorised ones are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audits.apollo.design.memorisation import Deal, deal_memorised, ranked_size
from audits.apollo.design.population import NONE, Member
from audits.apollo.design.split import Split
from audits.arrays import Ids
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, numpy_generator


@dataclass(frozen=True)
class ExposedSplit(Split):
    """A split whose candidates are on top of a ranking by exposure, of up to ``ranking_models`` models.

    ``audited`` stays as it is: candidates are not random.
    """

    audited: Literal["random", "memorised"] = "memorised"


def chosen(split: Split) -> str:
    """Return which points a split audits, as a plan says it: random, memorised or exposed."""
    return "exposed" if isinstance(split, ExposedSplit) else split.audited


def points_ranked(split: Split) -> int:
    """Return how many points a split that does not audit random ones has ranked. Raises ``BadInput`` if it cannot."""
    if not isinstance(split.forget, float | int):
        raise BadInput(
            f"split.points is {chosen(split)}, but split.forget says which points; give a fraction to forget"
        )
    return exposed_size(split) if isinstance(split, ExposedSplit) else ranked_size(split)


def exposed_size(split: Split) -> int:
    """Return how many points are ranked: whole training sets, as many as the pool holds, up to ``ranking_models``.

    The pool: all of (a) and the never-seen share of (c). Each model ranks the points that it trains on, so one would
    do; the more, the larger the pool of which candidates are the top. Raises ``BadInput``.
    """
    asked, size = split.targets * split.candidates_per_target, split.train_size
    available = split.target_pool + split.targets * split.candidates_unseen
    models = min(split.ranking_models, available // size)
    if models < 1:
        raise BadInput(
            f"split.points is exposed: {available} points can be ranked, but a model trains on {size}; raise "
            f"split.target_pool by {size - available}"
        )
    if asked > models * size:
        raise BadInput(
            f"split.points is exposed: {asked} candidates (all targets together) are more than the {models * size} "
            "points that are ranked; raise split.ranking_models and split.target_pool, or ask about fewer points"
        )
    drawn = size - split.candidates_forget - split.candidates_retained
    if available - asked < drawn:
        raise BadInput(
            f"split.points is exposed: beside the candidates {available - asked} points are left to train on, but a "
            f"target needs {drawn}; raise split.target_pool"
        )
    return models * size


def draw_watched(ranked: Ids, split: Split, seed: int) -> tuple[Member, ...]:
    """Return the models (role "ranking") that are watched: ``ranked``, dealt at random into training sets."""
    dealt = numpy_generator(derive_seed(seed, Purpose.EXPOSURE)).permutation(ranked)
    return tuple(
        Member(f"ranking-{index:03d}", "ranking", -1, 0, index, rows, NONE)
        for index, rows in enumerate(np.split(dealt, len(ranked) // split.train_size))
    )


def deal_exposed(available: Ids, ranking: NDArray[np.float64], split: Split, seed: int) -> Deal:
    """Return the most exposed of the ``available`` points, dealt at random to targets and groups.

    ``ranking``: (points of the data set,) exposure, NaN where not ranked. Raises ``BadInput`` when fewer points are
    ranked than are asked about.
    """
    known, needed = int((~np.isnan(ranking[available])).sum()), split.targets * split.candidates_per_target
    if known < needed:
        raise BadInput(f"split.points is exposed: {known} points are ranked, {needed} candidates are needed")
    return deal_memorised(available, ranking, split, seed)

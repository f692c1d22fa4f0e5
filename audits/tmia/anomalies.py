"""Distances of points from the centres of clusters: k-means over candidates and reference samples.

TMIA, Journal on Communications 42(10), 2021, Algorithm 1 (its body is reconstructed): c_i = argmin_j ‖φ_i − u_j‖², u_j
the mean of its members, d_i = ‖φ_i − u_{c_i}‖₂; candidates with d_i > α are attacked. Reconstructed as well: starts by
k-means++ (Arthur and Vassilvitskii, 2007, greedy as in scikit-learn), the best of several restarts, and an empty
cluster takes the point that lies farthest from its centre. Nothing here knows of any target or of membership.

Deviation: features too wide to be held are clustered in a random projection (Boutsidis, Zouzias and Drineas, "Random
projections for k-means clustering", 2010); centres and distances are then worked out from the features themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from audits.arrays import Floats, Ids
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.tmia.points import Streamed, Whole

RESTARTS, MAX_ITER, CHUNK, SAMPLE, COLUMNS = 10, 100, 1024, 2048, 512
ROUNDING = 1e-6  # restarts that found one optimum differ by less, and the first of them is kept


@dataclass(frozen=True)
class Clusters:
    """``assignment`` (N,): each point's nearest centre; ``centres`` (n_clusters, D), on the device of the features;
    ``distance`` (N,): L2 distance to the own centre; ``inertia``: sum of its squares; ``iterations``: how often the
    centres were moved."""

    assignment: Ids
    centres: torch.Tensor
    distance: Floats
    inertia: float
    iterations: int


def k_means(
    features: torch.Tensor,
    n_clusters: int,
    *,
    seed: int,
    restarts: int = RESTARTS,
    max_iter: int = MAX_ITER,
    chunk: int = CHUNK,
    start: torch.Tensor | None = None,
) -> Clusters:
    """Return the clusters of least inertia of ``restarts`` runs over ``features`` (N, D), float32, on any device.

    ``start`` (n_clusters, D) takes the place of k-means++ and of restarts. Memory: O(N·D + chunk·(D + n_clusters));
    another ``chunk`` changes rounding only. Raises ``BadInput`` for numbers that do not fit.
    """
    check(n_clusters, len(features), restarts=restarts, max_iter=max_iter, chunk=chunk)
    points = Whole(features, chunk)
    if start is not None:
        if start.shape != (n_clusters, features.shape[1]):
            raise BadInput(f"start has shape {tuple(start.shape)}; it must be {(n_clusters, features.shape[1])}")
        return lloyd(points, start, max_iter)
    best: Clusters | None = None
    for restart in range(restarts):
        generator = torch_generator(derive_seed(seed, Purpose.K_MEANS, restart))
        found = lloyd(points, plus_plus(points, n_clusters, generator), max_iter)
        if best is None or found.inertia < (1 - ROUNDING) * best.inertia:
            best = found
    assert best is not None, "there is at least one restart"
    return best


def k_means_streamed(
    blocks: Iterable[torch.Tensor],
    n_clusters: int,
    *,
    seed: int,
    restarts: int = RESTARTS,
    max_iter: int = MAX_ITER,
    chunk: int = CHUNK,
    sample: int = SAMPLE,
    columns: int = COLUMNS,
    start: torch.Tensor | None = None,
) -> Clusters:
    """Return clusters of features that are handed over as column ``blocks`` (N, d_b), one at a time.

    Blocks of up to ``columns`` columns together are held and clustered as ``k_means`` does. Wider ones are summed up in
    a sketch (``Streamed.sketch``): squared distances with a relative standard deviation of √(2/``columns``), .06 for
    512. In it k-means starts from the centres of ``k_means`` on a random ``sample`` of the points, restarts included,
    and runs as long as ``k_means`` would. One step on the features themselves ends it: centres are the exact means of
    the clusters found, and every point goes to the nearest of them. So the sketch decides which optimum is found;
    centres and ``distance`` are exact. ``iterations`` counts both.

    ``blocks`` (``Features``, or a list of memory maps) is read for the number of points (the first block only), the
    sketch, the step and the distances, however many iterations. With a ``start`` (n_clusters, D) there is no sketch:
    blocks are read in every iteration, and the result is that of ``k_means`` but for rounding.

    Memory: O(N·(columns + d_b + n_clusters) + n_clusters·D), never N·D.
    """
    if isinstance(blocks, Iterator):
        raise TypeError("blocks are read more than once; give a list or Features, not a generator")
    count = len(next(iter(blocks)))
    check(n_clusters, count, restarts=restarts, max_iter=max_iter, chunk=chunk)
    points = Streamed(blocks, count, chunk)
    if start is not None:
        if len(start) != n_clusters:
            raise BadInput(f"start has {len(start)} centres; n_clusters is {n_clusters}")
        return lloyd(points, start, max_iter)
    check(n_clusters, sample, sample=sample, columns=columns)
    sketch, width = points.sketch(columns, seed)
    if width <= columns:
        return k_means(sketch, n_clusters, seed=seed, restarts=restarts, max_iter=max_iter, chunk=chunk)
    order = torch.randperm(count, generator=torch_generator(derive_seed(seed, Purpose.K_MEANS_SAMPLE)))
    chosen = sketch[order[:sample].sort().values.to(sketch.device)]
    rough = k_means(chosen, n_clusters, seed=seed, restarts=restarts, max_iter=max_iter, chunk=chunk)
    rough = lloyd(Whole(sketch, chunk), rough.centres, max_iter)
    own = refilled(Whole(sketch, chunk), torch.from_numpy(rough.assignment).to(sketch.device), rough.centres)
    # A cluster is still empty only where every point is at its centre: then nobody goes to the centre 0 it begins with.
    found = lloyd(points, sketch.new_zeros(n_clusters, width), 1, own)
    return replace(found, iterations=rough.iterations + found.iterations)


def check(n_clusters: int, points: int, **positive: int) -> None:
    """Refuse more clusters than points, and settings below 1."""
    if not 1 <= n_clusters <= points:
        raise BadInput(f"n_clusters is {n_clusters}, but {points} points are clustered; allowed: 1 to {points}")
    for name, value in positive.items():
        if value < 1:
            raise BadInput(f"{name} is {value}; it must be 1 or more")


def lloyd(
    points: Whole | Streamed, start: torch.Tensor, max_iter: int, assignment: torch.Tensor | None = None
) -> Clusters:
    """Move the centres from ``start`` until no assignment changes, or ``max_iter`` times.

    The first ``assignment`` (N,) is to the nearest of ``start``, if none is given.
    """
    centres, iterations = start, 0
    assignment = points.nearest(start) if assignment is None else assignment
    while iterations < max_iter:
        iterations += 1
        before = refilled(points, assignment, centres)
        centres, assignment = points.moved(before, centres)
        if torch.equal(before, assignment):
            break
    squared = points.squared(assignment, centres).cpu().numpy()
    if not np.isfinite(squared).all():
        raise FloatingPointError("distances to the centres are not finite; look for NaN in the features")
    return Clusters(assignment.cpu().numpy(), centres, np.sqrt(squared), float(squared.sum()), iterations)


def refilled(points: Whole | Streamed, assignment: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Return ``assignment`` with the farthest points given to clusters without any, one each; none is robbed of all."""
    counts = torch.bincount(assignment, minlength=len(centres)).tolist()
    empty = [cluster for cluster, count in enumerate(counts) if count == 0]
    if not empty:
        return assignment
    given, squared = assignment.clone(), points.squared(assignment, centres)
    for row in squared.argsort(descending=True, stable=True).tolist():
        own = int(assignment[row])
        if not empty or squared[row] == 0:
            break
        if counts[own] > 1:
            counts[own] -= 1
            given[row] = empty.pop(0)
    return given


def plus_plus(points: Whole, n_clusters: int, generator: torch.Generator) -> torch.Tensor:
    """Return ``n_clusters`` of the points: each drawn with chances proportional to the squared distance to the nearest
    one so far; of 2 + ⌊ln n_clusters⌋ draws the one that leaves the smallest sum."""
    features, trials = points.features, 2 + int(math.log(n_clusters))
    chosen = torch.randint(len(features), (1,), generator=generator)
    closest = points.apart(features[chosen.to(features.device)])[:, 0]
    while len(chosen) < n_clusters:
        reach = closest.cumsum(0)
        drawn = torch.rand(trials, dtype=torch.float64, generator=generator) * reach[-1]
        tried = torch.searchsorted(reach, drawn, right=True).clamp_max(len(features) - 1)
        left = torch.minimum(closest[:, None], points.apart(features[tried.to(features.device)]))
        best = int(left.sum(0).argmin())
        closest, chosen = left[:, best], torch.cat([chosen, tried[best : best + 1]])
    return features[chosen.to(features.device)]

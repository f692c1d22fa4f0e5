"""Chance: permutations of membership, corrections for many tests, expected misses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed
from audits.statistics.roc import as_scores

PARTED = "groups: a group has points that are members and points that are not; membership is by group"


@dataclass(frozen=True)
class NullBand:
    """Quantiles of a statistic when membership means nothing, and the p-value of the value that was found."""

    value: float
    low: float
    median: float
    high: float
    p: float


def permuted_members(member: ArrayLike, draws: int, seed: int, groups: ArrayLike | None = None) -> Floats:
    """Return (draws, n) random relabelings of ``member`` (n,) that keep the number of members, as 0.0 / 1.0.

    ``groups`` (n,): points that are members together or not at all; then the number of member groups is kept. Raises
    BadInput for a group of which only a part are members.
    """
    rng = np.random.default_rng(seed)
    flags = np.asarray(member, dtype=np.float64)
    if groups is None:
        return np.asarray(rng.permuted(np.tile(flags, (draws, 1)), axis=1))
    _, first, group = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
    if (flags[first][group] != flags).any():
        raise BadInput(PARTED)
    return np.asarray(rng.permuted(np.tile(flags[first], (draws, 1)), axis=1)[:, group])


def permutation_p(
    scores: ArrayLike,
    member: ArrayLike,
    cluster: ArrayLike,
    *,
    draws: int = 2000,
    seed: int = 0,
    groups: ArrayLike | None = None,
    together: tuple[ArrayLike, ArrayLike] | None = None,
) -> Floats:
    """Return two-sided permutation p-values of the mean within-target AUC against ½, one for each column of scores.

    ``scores`` is (n,) or (n, k); all columns are judged under the same relabelings. Forget and unseen are permuted
    within each target (``cluster``), so differences between targets never count as evidence. p = (1 + #{relabelings at
    least as far from ½}) / (1 + draws): never 0, and valid for any number of draws.

    ``groups`` (n,): points that were dealt together (``audits.data.groups``). Their scores are alike, so that single
    points may not change sides: whole groups are permuted within each target.

    ``together``: units (n,) and point ids (n,), where the targets of a unit are asked about the same points. A point's
    membership in all targets of a unit then moves as one, for their scores of one point have something in common.
    """
    columns = np.atleast_2d(np.asarray(scores, dtype=np.float64).T).T
    targets, dealt = np.asarray(cluster), None if groups is None else np.asarray(groups)
    names = np.unique(targets)
    flags = np.asarray(member).astype(bool)
    drawn = np.zeros((draws, columns.shape[1]))
    found = np.zeros(columns.shape[1])
    tied = None if together is None else _moved_together(flags, targets, together, draws, seed, dealt)
    for index, name in enumerate(names):
        rows = targets == name
        ranks, own = _scaled_ranks(columns[rows], flags[rows])
        found += own.astype(np.float64) @ ranks
        if tied is not None:
            drawn += (tied[name] @ ranks) * _rescaled(tied[name], own)
            continue
        seed_here = derive_seed(seed, Purpose.PERMUTE, index)
        if dealt is None:
            drawn += permuted_members(own, draws, seed_here) @ ranks
        else:
            labels = permuted_members(own, draws, seed_here, dealt[rows])
            drawn += (labels @ ranks) * _rescaled(labels, own)
    tolerance = 1e-9 * names.size  # sums of equal ranks in another order must count as equal
    extreme = (np.abs(drawn) >= np.abs(found) - tolerance).sum(axis=0)
    return np.asarray((1.0 + extreme) / (1.0 + draws))


def _rescaled(labels: Floats, own: NDArray[np.bool_]) -> Floats:
    """Return by what sums of scaled ranks are multiplied for relabelings (draws, n) with other numbers of members."""
    inside = labels.sum(axis=1, keepdims=True)  # groups differ in size
    return np.asarray(own.sum() * (~own).sum() / (inside * (own.size - inside)))


def _moved_together(
    flags: NDArray[np.bool_],
    targets: NDArray[Any],
    together: tuple[ArrayLike, ArrayLike],
    draws: int,
    seed: int,
    dealt: NDArray[np.int64] | None,
) -> dict[Any, Floats]:
    """Return relabelings (draws, points) of each target, in which those of a unit permute their points alike."""
    units, points = map(np.asarray, together)
    found: dict[Any, Floats] = {}
    for place, unit in enumerate(np.unique(units)):
        own = [np.flatnonzero((units == unit) & (targets == name)) for name in np.unique(targets[units == unit])]
        if any(not np.array_equal(points[rows], points[own[0]]) for rows in own):
            raise BadInput(f"unit {unit}: its targets are asked about different points, which cannot move together")
        group = np.arange(len(own[0])) if dealt is None else np.unique(dealt[own[0]], return_inverse=True)[1]
        first = np.unique(group, return_index=True)[1]
        patterns = np.stack([flags[rows] for rows in own])
        if (patterns[:, first][:, group] != patterns).any():
            raise BadInput(PARTED)
        rng = np.random.default_rng(derive_seed(seed, Purpose.PERMUTE, place))
        moved = rng.permuted(np.tile(first, (draws, 1)), axis=1)[:, group]
        for rows, pattern in zip(own, patterns, strict=True):
            found[targets[rows[0]]] = pattern[moved].astype(np.float64)
    return found


def _scaled_ranks(scores: Floats, member: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return ranks (n, k) of which the sum over members is AUC − ½ of each column."""
    from scipy.stats import rankdata

    for column in scores.T:
        as_scores(column, member)
    inside, outside = int(member.sum()), int((~member).sum())
    return (rankdata(scores, axis=0) - (member.size + 1) / 2.0) / (inside * outside), member


def null_band(
    statistic: Callable[[NDArray[np.bool_]], float],
    member: ArrayLike,
    cluster: ArrayLike,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> NullBand:
    """Return where ``statistic(member)`` falls when membership is permuted within each target.

    Works for any statistic, such as the best-threshold AUC of the paper's decision rule, whose null is not ½ but
    .52–.57 with 100 points a group. The p-value is one-sided (large values are evidence).
    """
    flags = np.asarray(member).astype(bool)
    groups = np.asarray(cluster)
    rng = np.random.default_rng(seed)
    values = np.empty(draws)
    for draw in range(draws):
        shuffled = flags.copy()
        for name in np.unique(groups):
            rows = np.flatnonzero(groups == name)
            shuffled[rows] = flags[rng.permutation(rows)]
        values[draw] = statistic(shuffled)
    value = float(statistic(flags))
    tail = (1.0 - level) / 2.0
    low, median, high = (float(part) for part in np.quantile(values, [tail, 0.5, 1.0 - tail]))
    return NullBand(value, low, median, high, p=float((1 + (values >= value - 1e-12).sum()) / (1 + draws)))


def holm(pvalues: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values (1979): rejecting those ≤ α errs at all with probability at most α."""
    p = np.asarray(pvalues, dtype=np.float64)
    if p.size and (np.isnan(p).any() or p.min() < 0 or p.max() > 1):
        raise BadInput("p-values must lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def needed_permutations(tests: int, level: float) -> int:
    """Return the draws that bring the smallest p-value, 1 / (1 + draws), to a tenth of Holm's strictest limit."""
    return int(np.ceil(10.0 * tests / (1.0 - level)))


def expected_misses(intervals: int, level: float) -> float:
    """Return how many of so many intervals miss the truth by luck alone, on average."""
    return intervals * (1.0 - level)

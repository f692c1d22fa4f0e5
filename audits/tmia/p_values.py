"""p-values of "this candidate is not a member": the target's statistic ranked among those of reference models.

Source: Chen et al., Journal on Communications 42(10), 2021; their formula is lost and reconstructed here:
p = (1 + #{reference models at least as member-like}) / (n_ref + 1), never 0. If a non-member's statistic under the
target and under the reference models is exchangeable, P(p ≤ β) ≤ β for every β, at ties too (they count against
membership).

What exchangeable asks of the caller: the same recipe and size of training set for all models, and one rule for y*, the
class whose confidence is read, applied to each model by itself. The target's own predicted class read in the reference
models breaks it, and so does a small pool that they share (``audits.tmia.shared_pool``). Candidates of one target
share that target, so their errors come together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput


def rank_p(statistic: ArrayLike, reference: ArrayLike, larger_is_member: bool) -> Floats:
    """Return p-values in the shape of ``statistic``, (T, K) or (K,), ranked among ``reference`` (n_ref, K).

    ``larger_is_member``: False for losses, True for signed distances to the boundary. Every strictly increasing map of
    both leaves p as it is. NaN marks a failed distance: its p is NaN, so it is never called a member; a reference
    model's NaN is left out at its point and n_ref counts those left (exchangeability holds among them). ±inf are
    ordinary values. Raises BadInput for shapes that do not fit and for points of which no reference value is left.
    """
    own, others = toward_member(statistic, reference, larger_is_member)
    rows = np.atleast_2d(own)
    left = (~np.isnan(others)).sum(0)
    at_least = np.stack([(others >= row).sum(0) for row in rows])
    found: Floats = np.where(np.isnan(rows), np.nan, (1 + at_least) / (1 + left)).reshape(own.shape)
    return found


def decider(
    statistic: ArrayLike, reference: ArrayLike, beta: float, larger_is_member: bool
) -> Callable[[NDArray[np.integer]], Bools]:
    """Return ``decide(rows)``: which (T, K) have rank p ≤ ``beta`` among the reference models ``rows``, repeats
    allowed.

    Equal to ``rank_p(statistic, reference[rows], …) <= beta`` for ``statistic`` (T, K), in one matrix product a call;
    a point of which ``rows`` leave no reference value gets no decision. Holds n_ref·T·K float32. Made for
    :func:`audits.statistics.precision.measure`. Raises BadInput as :func:`rank_p` and :func:`check_level` do.
    """
    own, others = toward_member(statistic, reference, larger_is_member)
    if own.ndim != 2:
        raise BadInput(f"statistic has shape {own.shape}; allowed here: (targets, candidates)")
    n_ref = len(others)
    check_level(beta, n_ref)
    at_least = np.stack([other >= own for other in others]).astype(np.float32).reshape(n_ref, -1)
    present = (~np.isnan(others)).astype(np.float32)
    measured = ~np.isnan(own)

    def decide(rows: NDArray[np.integer]) -> Bools:
        times = np.bincount(rows, minlength=n_ref).astype(np.float32)
        p = (1 + (times @ at_least).astype(np.float64).reshape(own.shape)) / (1 + (times @ present).astype(np.float64))
        called: Bools = measured & (p <= beta)
        return called

    return decide


def smoothed_p(statistic: ArrayLike, reference: ArrayLike, larger_is_member: bool) -> Floats:
    """Return p-values as :func:`rank_p` does, from a smoothed distribution function: for parity with PMIA.

    Long et al. (EuroS&P 2020): p = F(L_target), F the monotone cubic (PCHIP; Fritsch and Butland 1984) through the
    empirical distribution function of the reference losses. Deviations: tied values are one knot, of the highest share;
    nothing is extrapolated (0 left of the knots, 1 right of them); clamped to [1/(n_ref + 1), 1]. Under exchangeability
    P(p ≤ β) ≤ (n_ref·β + 1)/(n_ref + 1): not quite valid for few reference models. Not kept by monotone maps. Raises
    BadInput as :func:`rank_p` does, and for infinite reference values.
    """
    own, others = toward_member(statistic, reference, larger_is_member)
    if (infinite := int(np.isinf(others).sum())) > 0:
        raise BadInput(f"{infinite} reference values are infinite; allowed: finite or NaN; use rank_p")
    own, others = -own, -others  # small is member, as a loss
    knots, shares, count = _distribution(others)
    slopes = pchip_slopes(knots, shares, count)
    left = (~np.isnan(others)).sum(0)
    found = np.stack([_interpolated(row, knots, shares, slopes, count) for row in np.atleast_2d(own)])
    return np.clip(found, 1 / (1 + left), 1.0).reshape(own.shape)


def attainable(n_ref: int) -> float:
    """Return the smallest p-value that ``n_ref`` reference models can give, 1/(n_ref + 1)."""
    if n_ref < 1:
        raise BadInput(f"n_ref is {n_ref}; allowed: 1 or more reference models")
    return 1 / (n_ref + 1)


def check_level(beta: float, n_ref: int) -> None:
    """Raise BadInput where no p-value of ``n_ref`` reference models can be ≤ ``beta``.

    The message names the n_ref needed: β = .05 needs 19 reference models, β = .01 needs 99.
    """
    if not 0 < beta < 1:
        raise BadInput(f"beta is {beta}; allowed: between 0 and 1")
    if attainable(n_ref) > beta:
        needed = math.ceil(round(1 / beta, 9)) - 1
        raise BadInput(
            f"beta = {beta:g} cannot be reached with n_ref = {n_ref} (the smallest p-value is 1/{n_ref + 1}); "
            f"raise n_ref to {needed} or more, or beta to {math.ceil(1e4 / (n_ref + 1)) / 1e4:g} or more"
        )


def attained_level(beta: float, n_ref: int) -> tuple[int, int]:
    """Return (a, n_ref + 1): a/(n_ref + 1) is the largest rank p-value ≤ ``beta``, the level that is truly tested."""
    check_level(beta, n_ref)
    return math.floor(round(beta * (n_ref + 1), 9)), n_ref + 1


def toward_member(statistic: ArrayLike, reference: ArrayLike, larger_is_member: bool) -> tuple[Floats, Floats]:
    """Return both as float64, turned so that larger is more member-like; refuse what does not fit together."""
    own, others = np.asarray(statistic, np.float64), np.asarray(reference, np.float64)
    if others.ndim != 2 or own.ndim not in (1, 2) or own.shape[-1] != others.shape[1] or not len(np.atleast_2d(own)):
        raise BadInput(
            f"statistic has shape {own.shape} and reference {others.shape}; "
            "allowed: (targets, candidates) or (candidates,), and (reference models, candidates)"
        )
    empty = np.flatnonzero(np.isnan(others).all(0))
    if empty.size:
        raise BadInput(
            f"{empty.size} of {others.shape[1]} candidates (first: column {empty[0]}) have no reference value; "
            "leave them out of the attack or add reference models"
        )
    return (own, others) if larger_is_member else (-own, -others)


def _distribution(values: Floats) -> tuple[Floats, Floats, Ids]:
    """Return the empirical distribution function of each column of ``values`` (n, K): knots and shares (n, K).

    The distinct values of a column stand first, rising, with the share of values ≤ each; ``count`` (K,) is their
    number. Rows beyond it are fillers (knots rise, the share stays 1), so that differences stay positive.
    """
    ordered = np.sort(values, axis=0)  # NaN last
    left = (~np.isnan(ordered)).sum(0)
    place = np.arange(1, len(ordered) + 1)[:, None]
    following = np.concatenate([ordered[1:], np.full((1, ordered.shape[1]), np.nan)])
    last = (ordered != following) & (place <= left)
    count: Ids = last.sum(0).astype(np.int64)
    front = np.argsort(~last, axis=0, kind="stable")
    shares = np.take_along_axis(np.broadcast_to(place / left, ordered.shape), front, axis=0)
    knots = np.take_along_axis(ordered, front, axis=0)
    beyond = place > count
    highest = np.take_along_axis(knots, count[None] - 1, axis=0)
    filler = highest + np.maximum(1.0, np.abs(highest)) * (place - count)
    return np.where(beyond, filler, knots), np.where(beyond, 1.0, shares), count


def pchip_slopes(x: Floats, y: Floats, count: Ids) -> Floats:
    """Return PCHIP's slopes (n, K) at the first ``count`` (K,) knots of each column; the others mean nothing."""
    slopes = np.zeros_like(x)
    if len(x) < 2:
        return slopes
    width = np.diff(x, axis=0)
    rise = np.diff(y, axis=0) / width
    with np.errstate(divide="ignore"):
        before, after = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
        slopes[1:-1] = (before + after) / (before / rise[:-1] + after / rise[1:])
    final = np.maximum(count - 2, 0)[None]
    inner = np.maximum(count - 3, 0)[None]

    def at(table: Floats, row: Ids) -> Floats:
        return np.asarray(np.take_along_axis(table, row, axis=0)[0])

    first = np.zeros_like(final)
    second = np.minimum(first + 1, final)  # with two knots both are the one interval, and the curve a line
    head = _end_slope(at(width, first), at(width, second), at(rise, first), at(rise, second))
    tail = _end_slope(at(width, final), at(width, inner), at(rise, final), at(rise, inner))
    slopes[0] = head
    np.put_along_axis(slopes, np.maximum(count - 1, 1)[None], tail[None], axis=0)
    return slopes


def _end_slope(width: Floats, next_width: Floats, rise: Floats, next_rise: Floats) -> Floats:
    """Return the three-point slope at an end knot, 0 where it would fall."""
    return np.maximum(0.0, ((2 * width + next_width) * rise - width * next_rise) / (width + next_width))


def _interpolated(at: Floats, x: Floats, y: Floats, slopes: Floats, count: Ids) -> Floats:
    """Return the curve's values (K,) at one value ``at`` (K,) a column: 0 below the first knot, 1 from the last on."""
    passed = ((x <= at) & (np.arange(len(x))[:, None] < count)).sum(0)
    row = np.clip(passed - 1, 0, max(len(x) - 2, 0))[None]
    follow = np.minimum(row + 1, len(x) - 1)
    x0, x1, y0, y1, m0, m1 = (
        np.take_along_axis(table, place, axis=0)[0] for table in (x, y, slopes) for place in (row, follow)
    )
    width = np.where(x1 > x0, x1 - x0, 1.0)
    t = np.clip((at - x0) / width, 0.0, 1.0)
    step, lean, turn = y1 - y0, width * m0, width * m1
    inside = y0 + t * (lean + t * (3 * step - 2 * lean - turn + t * (lean + turn - 2 * step)))
    found = np.where(passed == 0, 0.0, np.clip(inside, y0, y1))
    return np.where(np.isnan(at), np.nan, found)

"""Decisions by the smoothed p-value, again and again with other draws of the reference models.

:func:`~audits.tmia.p_values.smoothed_p` costs a sort and a curve a draw. Whether p ≤ beta depends on the curve
between two knots only: the last with a share of at most beta and the next, because the curve rises. Reference values
are therefore sorted once; a draw gives each a weight, and of every point's curve four knots are looked up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Bools, Floats
from audits.tmia.p_values import check_level, pchip_slopes, toward_member


def smoothed_decider(
    statistic: ArrayLike, reference: ArrayLike, beta: float, larger_is_member: bool
) -> Callable[[NDArray[np.integer]], Bools]:
    """Return ``decide(rows)``: which (T, K) have smoothed p ≤ ``beta`` among the reference models ``rows``.

    Equal to ``smoothed_p(statistic, reference[rows], …) <= beta`` for ``statistic`` (T, K) and finite or NaN
    ``reference`` (n_ref, K), repeats in ``rows`` allowed; a point of which they leave no reference value gets no
    decision. Holds and reads O(n_ref·K + T·K). Raises BadInput as ``p_values.decider`` does.
    """
    own, others = (
        -part for part in toward_member(statistic, reference, larger_is_member)
    )  # small is member, as a loss
    check_level(beta, len(others))
    order = np.argsort(others, axis=0, kind="stable").T  # (K, n_ref), NaN last
    ordered = np.take_along_axis(others.T, order, axis=1)
    present = ~np.isnan(ordered)
    last = np.concatenate([ordered[:, 1:] != ordered[:, :-1], np.ones((len(ordered), 1), dtype=bool)], axis=1) & present
    before = np.maximum.accumulate(  # place of the last smaller value; 0 stands for none, as cumulated weights begin so
        np.where(np.roll(last, 1, axis=1), np.arange(last.shape[1]), 0), axis=1
    )
    values = np.where(present, ordered, 0.0)

    def decide(rows: NDArray[np.integer]) -> Bools:
        times = np.bincount(rows, minlength=len(others))
        reached = np.zeros((len(values), len(others) + 1), dtype=np.int64)
        np.cumsum(np.where(present, times[order], 0), axis=1, out=reached[:, 1:])
        left = reached[:, -1]
        share = reached[:, 1:] / np.maximum(left, 1)[:, None]
        knot = last & (reached[:, 1:] > np.take_along_axis(reached, before, axis=1))
        low = (knot & (share <= beta)).sum(1)
        x, y, slopes = _four_knots(values, share, knot, low)
        lower = (np.clip(low - 1, 0, 1)[None], np.arange(len(values))[None])
        x0, y0, lean = (table[lower][0] for table in (x, y, slopes))
        upper = (lower[0] + 1, lower[1])
        x1, y1, turn = (table[upper][0] for table in (x, y, slopes))
        width, step = x1 - x0, y1 - y0
        t = np.clip((own - x0) / width, 0.0, 1.0)
        lean, turn = width * lean, width * turn
        inside = np.clip(y0 + t * (lean + t * (3 * step - 2 * lean - turn + t * (lean + turn - 2 * step))), y0, y1)
        called: Bools = np.where(low == 0, own < x0, (own < x1) & (inside <= beta))
        return called & (left > 0) & (beta * (1 + left) >= 1)

    return decide


def _four_knots(values: Floats, share: Floats, knot: Bools, low: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return places, shares and slopes (4, K) of the knots around the ``low``-th (K,) of each row of ``knot`` (K, n).

    Two up to the ``low``-th and two beyond, or the first four where ``low`` is below 2. Slopes are right at the
    ``low``-th and the next: they depend on a knot and its neighbours, at the ends of the curve on the outer three.
    """
    place, count = np.cumsum(knot, axis=1), knot.sum(1)
    first = np.maximum(low - 2, 0)
    row = np.stack([np.argmax(place > first[:, None] + step, axis=1) for step in range(4)])
    size = np.minimum(count - first, 4)
    step = np.arange(4)[:, None]
    final = np.take_along_axis(row, np.maximum(size - 1, 0)[None], axis=0)
    kept = np.where(step < size, row, final)
    column = np.arange(len(values))
    x, y = values[column, kept], share[column, kept]
    filler = np.maximum(1.0, np.abs(x)) * np.maximum(step - size + 1, 0)
    x = x + filler  # beyond the curve knots go on rising, so that differences stay positive
    return x, y, pchip_slopes(x, y, size)

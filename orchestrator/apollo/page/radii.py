"""Estimated intervals of Apollo's theorems beside the radii at which labels really flip."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from orchestrator.apollo.result.rows import RadiusPoints
from orchestrator.report.style import GRID, LABELS, POSTERIORS


def method_radii(points: RadiusPoints) -> Figure | None:
    """Draw the points of one unlearning method; None when they have neither intervals nor flips."""
    under, over, found_under, found_over = (
        np.asarray(column, dtype=float) for column in (points.under, points.over, points.flip_under, points.flip_over)
    )
    return radius_figure(under.reshape(-1, 2), over.reshape(-1, 2), found_under, found_over)


def radius_figure(under: ArrayLike, over: ArrayLike, found_under: ArrayLike, found_over: ArrayLike) -> Figure | None:
    """Draw, per point, the estimated interval of radii (grey) and the radius at which the label flipped (dot).

    ``under``, ``over``: (K, 2) lowest and highest radius, NaN where the theorem allows none
    (:mod:`audits.statistics.radii`); ``found_under``, ``found_over``: (K,) radii found, NaN where no label flipped.
    Filled dots lie inside their interval. None when no side has an interval or a flip.
    """
    sides = [
        ("UNDER (Theorem III.3)", np.asarray(under, float), np.asarray(found_under, float), LABELS),
        ("OVER (Theorem III.4)", np.asarray(over, float), np.asarray(found_over, float), POSTERIORS),
    ]
    sides = [side for side in sides if np.isfinite(side[1]).all(axis=1).any() or np.isfinite(side[2]).any()]
    if not sides:
        return None
    figure = Figure(figsize=(6.6, 2.7 * len(sides) + 0.3), layout="constrained")
    panels = figure.subplots(len(sides), 1, squeeze=False)[:, 0]
    for axes, (title, span, radius, colour) in zip(panels, sides, strict=True):
        real = np.isfinite(span).all(axis=1)
        order = np.lexsort([radius, np.where(real, span[:, 0], np.inf)])
        shown = order[(real | np.isfinite(radius))[order]]
        place = np.arange(shown.size)
        axes.vlines(place, span[shown, 0], span[shown, 1], color=GRID, linewidth=max(1.0, min(6.0, 300 / shown.size)))
        inside = (span[shown, 0] <= radius[shown]) & (radius[shown] <= span[shown, 1])
        axes.plot(place[inside], radius[shown][inside], "o", color=colour, markersize=3.5)
        axes.plot(place[~inside], radius[shown][~inside], "o", color=colour, markerfacecolor="none", markersize=3.5)
        flipped = int(np.isfinite(radius[shown]).sum())
        axes.set_title(f"{title}: {int(inside.sum())} of {flipped} flips inside, {int(real.sum())} intervals")
        axes.set_ylabel("L2 radius")
        axes.set_ylim(bottom=0.0)
        axes.grid(axis="x", visible=False)
    panels[-1].set_xlabel("point, by estimated lower radius, then by the radius found")
    return figure

"""Estimated intervals of Apollo's theorems, and what the labels of the unlearned model say of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from audits.statistics.radii import EXPECTED, OPEN, REFUTED, Side
from orchestrator.apollo.result.rows import RadiusPoints, RadiusRow
from orchestrator.report.style import GRID, INK, LABELS, SERIES

TITLES: dict[Side, str] = {"under": "UNDER (Theorem III.3)", "over": "OVER (Theorem III.4)"}
COLOURS = {EXPECTED: LABELS, REFUTED: SERIES[1], OPEN: GRID}
SAID = {
    "under": {EXPECTED: "θ_u says y where asked", REFUTED: "flip before the end: refuted", OPEN: "not asked inside"},
    "over": {EXPECTED: "θ_u flips inside", REFUTED: "flip before it: refuted", OPEN: "no flip seen inside"},
}
REFERENCES = {
    "own_start": "retrained from the target’s own start",
    "retrain": "retrained from another start (the control)",
}


def figure_name(row: RadiusRow) -> str:
    """Return the name of the figure of a row."""
    return f"radii_{row.unlearner}" + ("" if row.reference == "retrain" else f"_{row.reference}")


def statements(points: RadiusPoints, side: Side) -> NDArray[np.str_]:
    """Return what labels say of each interval of a side."""
    kept = points.answer_under if side == "under" else points.answer_over
    return np.array([answer or "" for answer in kept], dtype=str)


def counts(row: RadiusRow, side: Side) -> tuple[int, int, int]:
    """Return how many intervals of a side the labels bear out, refute, and leave open."""
    own = row.under if side == "under" else row.over
    return own.expected, own.refuted, own.open


def columns(points: RadiusPoints, side: Side) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return intervals (K, 2) and flips (K,) of a side, NaN where there is none."""
    span, flip = (points.under, points.flip_under) if side == "under" else (points.over, points.flip_over)
    return np.asarray(span, dtype=float).reshape(-1, 2), np.asarray(flip, dtype=float)


def method_radii(points: RadiusPoints) -> Figure | None:
    """Draw, per point of a row, the estimated interval and the radius at which the unlearned model's label flipped.

    The colour of an interval is what the label says of it (``answers``); dots are flips, hollow where they refute.
    None when no side has an interval or a flip.
    """
    sides = [side for side in TITLES if any(np.isfinite(column).any() for column in columns(points, side))]
    if not sides:
        return None
    figure = Figure(figsize=(6.6, 2.9 * len(sides) + 0.3), layout="constrained")
    panels = figure.subplots(len(sides), 1, squeeze=False)[:, 0]
    for axes, side in zip(panels, sides, strict=True):
        span, radius = columns(points, side)
        answer = statements(points, side)
        real = answer != ""
        order = np.lexsort([radius, np.where(real, span[:, 0], np.inf)])
        shown = order[(real | np.isfinite(radius))[order]]
        place, width = np.arange(shown.size), max(1.0, min(6.0, 300 / shown.size))
        for said, colour in COLOURS.items():
            own = answer[shown] == said
            label = f"{SAID[side][said]} ({int(own.sum())})"
            axes.vlines(place[own], *span[shown[own]].T, color=colour, alpha=0.7, linewidth=width, label=label)
        against = answer[shown] == REFUTED
        look: dict[str, Any] = {"color": INK, "linestyle": "", "marker": "o", "markersize": 3.5}
        axes.plot(place[~against], radius[shown[~against]], **look)
        axes.plot(place[against], radius[shown[against]], markerfacecolor="none", **look)
        axes.set_title(f"{TITLES[side]}: {int(real.sum())} intervals, {int(against.sum())} refuted")
        axes.set_ylabel("L2 radius")
        axes.set_ylim(bottom=0.0)
        axes.grid(axis="x", visible=False)
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.08), ncols=3, borderaxespad=0.0, fontsize=7.5)
    panels[-1].set_xlabel("point, by estimated lower radius, then by the radius found", labelpad=24)
    return figure

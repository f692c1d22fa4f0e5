"""Figures of judged scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from audits.statistics import intervals, roc
from audits.statistics.judged import Judged, rows_by
from orchestrator.report.numbers import percent
from orchestrator.report.style import DASHES, INK, MUTED, SERIES

MOST_CURVES = 8


def roc_curves(found: Sequence[Judged], level: float) -> Figure:
    """Draw the ROC of each attack, linear and log-log: targets' curves averaged at equal FPR, with a t band."""
    fewest = min(int((~judged.member).sum()) / len(rows_by(judged.target)) for judged in found)
    lowest = min(0.1, max(1e-6, 0.5 / fewest))
    resolvable = roc.EXPECTED_FALSE_POSITIVES / min(int((~judged.member).sum()) for judged in found)
    figure = Figure(figsize=(8.4, 4.3), layout="constrained")
    plain, logarithmic = figure.subplots(1, 2)
    for axes, grid in ((plain, np.linspace(0.0, 1.0, 201)), (logarithmic, np.geomspace(lowest, 1.0, 160))):
        axes.plot(grid, grid, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        for place, judged in enumerate(found[:MOST_CURVES]):
            curves = np.stack(
                [
                    roc.tpr_at_fpr(roc.roc(judged.scores[rows], judged.member[rows]), grid)
                    for rows in rows_by(judged.target)
                ]
            )
            mean, style = curves.mean(axis=0), {"color": SERIES[place], "linestyle": DASHES[place]}
            axes.plot(grid, mean, label=judged.attack, **style)
            if len(curves) > 1:
                half = intervals.student_quantile(level, len(curves) - 1) * curves.std(axis=0, ddof=1)
                half /= np.sqrt(len(curves))
                low, high = np.clip(mean - half, 1e-9, 1), np.clip(mean + half, 0, 1)
                axes.fill_between(grid, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set_xlabel("false-positive rate")
    plain.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", ylabel="true-positive rate")
    logarithmic.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1), aspect="equal")
    logarithmic.axvspan(lowest, max(lowest, resolvable), color=MUTED, alpha=0.14, linewidth=0)
    for axis in (logarithmic.xaxis, logarithmic.yaxis):
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g}\N{NO-BREAK SPACE}%"))
    figure.legend(*plain.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def areas(found: Sequence[tuple[str, float, tuple[float, float], bool]], level: float) -> Figure:
    """Draw the AUC of each attack (name, AUC, ends, above chance) with its interval."""
    figure = Figure(figsize=(7.0, 0.34 * len(found) + 1.0), layout="constrained")
    axes = figure.subplots()
    for height, (_, area, ends, above) in enumerate(found):
        axes.plot(ends, [height] * 2, color=SERIES[0], linewidth=2.0, solid_capstyle="butt")
        face = SERIES[0] if above else "#fefefe"
        axes.plot(area, height, "o", color=SERIES[0], markerfacecolor=face, markeredgewidth=1.4, markersize=6)
    axes.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.set_yticks(range(len(found)), [name for name, *_ in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.45), max(high, 0.6))
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"AUC with {percent(level, 0)} interval (dashed: chance)")
    return figure

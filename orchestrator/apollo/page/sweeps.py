"""Curves of a sweep (Apollo's Fig. 6): AUC and TPR of one attack against each swept quantity, a line per unlearner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from audits.statistics.discoveries import judge_among
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.page.swept import panels, rows_along
from orchestrator.apollo.result.words import heading, words
from orchestrator.report.axes import is_logarithmic, value_axis
from orchestrator.report.style import DASHES, INK, MARKERS, MUTED, SERIES
from orchestrator.report.swept import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CURVES = 6
MOST_COLUMNS = 4


def swept_attacks(run: ApolloRun) -> list[str]:
    """Return the attacks to draw: those whose AUC differs between settings for some unlearner, at most six.

    The attack of the exposure list comes first, the others in the order of the table.
    """
    chosen = []
    for attack in run.attacks:
        values: dict[str, set[float]] = {}
        for row in run.result.table:
            if row.attack == attack:
                values.setdefault(row.unlearner, set()).add(float(row.auc))
        if any(len(found) > 1 for found in values.values()):
            chosen.append(attack)
    first = judge_among(chosen) if chosen else ""
    return sorted(chosen, key=lambda name: name != first)[:MOST_CURVES]


def sweep_curves(run: ApolloRun, attack: str) -> Figure | None:
    """Draw AUC and, below, TPR (with intervals) of ``attack`` against whatever was swept; None without a sweep."""
    swept = panels(run)
    if not swept:
        return None
    columns = min(MOST_COLUMNS, len(swept))
    lines = -(-len(swept) // columns)
    figure = Figure(figsize=(2.75 * columns + 0.3, 4.4 * lines + 0.6), layout="constrained")
    grid = figure.subplots(2 * lines, columns, squeeze=False)
    for name, first in (("auc", 0), ("tpr", 1)):
        shared = [grid[2 * line + first, column] for line in range(lines) for column in range(columns)]
        for axes, panel in zip(shared, swept, strict=False):
            axes.sharey(shared[0]) if axes is not shared[0] else None
            _curves(axes, run, panel, attack, name)
        for axes in shared[len(swept) :]:
            axes.set_visible(False)
        for line in range(lines):
            title = f"AUC of {words(attack)}" if name == "auc" else f"TPR at FPR {run.fpr * 100:g} %"
            grid[2 * line + first, 0].set_ylabel(title)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(5, len(names)))
    return figure


def _curves(axes: Axes, run: ApolloRun, panel: Panel, attack: str, name: str) -> None:
    """Draw one swept quantity: a line with intervals per unlearner, chance dashed, the plan's own value marked.

    Rates that are void are left out.
    """
    logarithmic = is_logarithmic(panel.values)
    for index, unlearner in enumerate(run.unlearners):
        rows = rows_along(run, panel, unlearner, attack)
        rows = [(value, row) for value, row in rows if name == "auc" or not row.void]
        if not rows:
            continue
        nudge = (index - (len(run.unlearners) - 1) / 2) * 0.012  # keeps intervals of several unlearners apart
        values = np.array([value for value, _ in rows])
        span = max(panel.values) - min(panel.values)
        shown = values * (max(panel.values) / min(panel.values)) ** nudge if logarithmic else values + nudge * span
        found = [row.auc if name == "auc" else row.tpr for _, row in rows]
        axes.errorbar(
            shown,
            np.array(found, dtype=float),
            yerr=np.array([each.errors for each in found]).T,
            color=SERIES[index % len(SERIES)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle=DASHES[index % len(DASHES)],
            linewidth=1.2,
            elinewidth=0.8,
            markersize=4.5,
            label=heading(unlearner),
        )
    value_axis(axes, panel.values, logarithmic=logarithmic)
    axes.axhline(0.5 if name == "auc" else run.fpr, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    if (own := run.result.own_setting) in panel.settings:
        axes.axvline(panel.values[panel.settings.index(own)], color=MUTED, linewidth=0.7, alpha=0.6)
    axes.set_xlabel(panel.axis)

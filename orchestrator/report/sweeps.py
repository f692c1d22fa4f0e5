"""Curves of a sweep: AUC of one attack against each swept quantity, one line per unlearner."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from orchestrator.report.reading import Panel, Row, Run, heading, words
from orchestrator.report.style import DASHES, INK, MARKERS, MUTED, SERIES


def panel_rows(run: Run, panel: Panel, unlearner: str, attack: str) -> list[tuple[float, Row]]:
    """Return (swept value, table row) along a panel, where the row exists."""
    found = []
    for value, setting in zip(panel.values, panel.settings, strict=True):
        rows = [row for row in run.rows(setting) if row["unlearner"] == unlearner and row["attack"] == attack]
        found += [(value, row) for row in rows]
    return found


def swept_attacks(run: Run) -> list[str]:
    """Return the attacks that a sweep changes: those whose AUC differs between settings for some unlearner."""
    chosen = []
    for attack in run.attacks:
        values: dict[str, set[float]] = {}
        for row in run.result["table"]:
            if row["attack"] == attack:
                values.setdefault(row["unlearner"], set()).add(row["auc"])
        if any(len(found) > 1 for found in values.values()):
            chosen.append(attack)
    return chosen


def sweep_curves(run: Run, attack: str) -> Figure | None:
    """Draw AUC (with intervals) of ``attack`` against β/α, m, ε, T or whatever was swept; None without a sweep."""
    panels = run.panels
    if not panels:
        return None
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(2.75 * columns + 0.3, 2.9 * lines + 0.5), layout="constrained")
    grid = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid, panels, strict=False):
        logarithmic = min(panel.values) > 0 and max(panel.values) / min(panel.values) >= 4
        for index, unlearner in enumerate(run.unlearners):
            rows = panel_rows(run, panel, unlearner, attack)
            nudge = (index - (len(run.unlearners) - 1) / 2) * 0.012  # keeps intervals of several unlearners apart
            values = np.array([value for value, _ in rows])
            span = max(panel.values) - min(panel.values)
            shown = values * (max(panel.values) / min(panel.values)) ** nudge if logarithmic else values + nudge * span
            area = np.array([row["auc"] for _, row in rows])
            low = area - np.array([row["auc_low"] for _, row in rows])
            high = np.array([row["auc_high"] for _, row in rows]) - area
            axes.errorbar(
                shown,
                area,
                yerr=[low, high],
                color=SERIES[index % len(SERIES)],
                marker=MARKERS[index % len(MARKERS)],
                linestyle=DASHES[index % len(DASHES)],
                linewidth=1.2,
                elinewidth=0.8,
                markersize=4.5,
                label=heading(unlearner),
            )
        if logarithmic:
            axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(list(panel.values)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(list(panel.values), [f"{value:g}" for value in panel.values])
        axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        if run.main_setting in panel.settings:
            axes.axvline(panel.values[panel.settings.index(run.main_setting)], color=MUTED, linewidth=0.7, alpha=0.6)
        axes.set_xlabel(panel.axis)
        axes.grid(axis="x", visible=False)
    grid[0].set_ylabel(f"AUC of {words(attack)}")
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure

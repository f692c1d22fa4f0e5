"""Power of attacks against the number of labels that they may ask per point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from orchestrator.apollo.result.rows import BudgetRow
from orchestrator.apollo.result.words import heading, words
from orchestrator.report.axes import is_logarithmic, value_axis
from orchestrator.report.style import DASHES, INK, MARKERS, SERIES

MOST_COLUMNS = 5


def budget_curves(rows: Sequence[BudgetRow]) -> Figure | None:
    """Draw AUC (upper rows) and TPR (lower) with interval bands against queries per point, a panel per unlearner.

    None without rows; rates that are void are left out.
    """
    if not rows:
        return None
    unlearners = list(dict.fromkeys(row.unlearner for row in rows))
    attacks = list(dict.fromkeys(row.attack for row in rows))
    columns = min(MOST_COLUMNS, len(unlearners))
    lines = -(-len(unlearners) // columns)
    figure = Figure(figsize=(2.6 * columns + 0.5, 4.4 * lines + 0.6), layout="constrained")
    grid = figure.subplots(2 * lines, columns, squeeze=False, sharex=True, sharey="row")
    queries = tuple(sorted({float(row.queries) for row in rows}))
    for place, unlearner in enumerate(unlearners):
        line, column = divmod(place, columns)
        for offset, name in enumerate(("auc", "tpr")):
            axes = grid[2 * line + offset, column]
            for index, attack in enumerate(attacks):
                own = [row for row in rows if (row.unlearner, row.attack) == (unlearner, attack)]
                own = [row for row in own if name == "auc" or not row.void]
                own.sort(key=lambda row: row.queries)
                asked = [row.queries for row in own]
                colour = SERIES[index % len(SERIES)]
                style: dict[str, Any] = {
                    "marker": MARKERS[index % len(MARKERS)],
                    "linestyle": DASHES[index % len(DASHES)],
                }
                found = [row.auc if name == "auc" else row.tpr for row in own]
                axes.plot(asked, list(map(float, found)), color=colour, markersize=4, label=words(attack), **style)
                low, high = ([each.ends[end] for each in found] for end in (0, 1))
                axes.fill_between(asked, low, high, color=colour, alpha=0.13, linewidth=0)
            value_axis(axes, queries, logarithmic=is_logarithmic(queries) if len(queries) > 1 else False)
            axes.tick_params(labelbottom=offset == 1)
            if name == "auc":
                axes.set_title(heading(unlearner))
                axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
            if column == 0:
                axes.set_ylabel(name.upper())
    for place in range(len(unlearners), lines * columns):
        line, column = divmod(place, columns)
        grid[2 * line, column].set_visible(False)
        grid[2 * line + 1, column].set_visible(False)
    figure.supxlabel("labels asked of the target per point", fontsize=9)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(4, len(names)))
    return figure

"""Apollo's own decision rule beside what chance reaches by the same procedure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from orchestrator.apollo.page.glossary import heading
from orchestrator.apollo.result.rows import PaperRuleRow
from orchestrator.report.numbers import small_p
from orchestrator.report.style import GRID, INK, LABELS


def paper_rule_figure(rows: Sequence[PaperRuleRow]) -> Figure | None:
    """Draw, per unlearning method, the best balanced accuracy over τ (dot) and its permutation band (grey)."""
    if not rows:
        return None
    figure = Figure(figsize=(5.2, 0.36 * len(rows) + 0.9), layout="constrained")
    axes = figure.subplots()
    for height, row in enumerate(rows):
        axes.plot([row.null_low, row.null_high], [height] * 2, color=GRID, linewidth=9, solid_capstyle="butt")
        beyond = row.best > row.null_high
        axes.plot(row.best, height, "o", color=LABELS, markerfacecolor=LABELS if beyond else "none", markersize=6)
        axes.annotate(f"p {small_p(row.p)}", (1.0, height), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axes.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.set_yticks(range(len(rows)), [heading(row.unlearner) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("best balanced accuracy over τ, picked on the judged points")
    return figure

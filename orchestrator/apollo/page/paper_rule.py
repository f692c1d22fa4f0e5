"""The rules of Apollo's paper: their balanced accuracy over τ, and what chance reaches by picking the best τ."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from orchestrator.apollo.result.rows import PaperRuleRow
from orchestrator.apollo.result.words import heading, words
from orchestrator.report.numbers import small_p
from orchestrator.report.style import DASHES, GRID, INK, LABELS, SERIES


def paper_rule_figure(rows: Sequence[PaperRuleRow]) -> Figure | None:
    """Draw, per rule (panel) and unlearning method, the best balanced accuracy over τ and its permutation band."""
    if not rows:
        return None
    unlearners, attacks = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("unlearner", "attack"))
    figure = Figure(figsize=(3.4 * len(attacks) + 1.6, 0.36 * len(unlearners) + 1.1), layout="constrained")
    panels = figure.subplots(1, len(attacks), sharex=True, sharey=True, squeeze=False)[0]
    for axes, attack in zip(panels, attacks, strict=True):
        for row in (row for row in rows if row.attack == attack):
            height = unlearners.index(row.unlearner)
            axes.plot([row.null_low, row.null_high], [height] * 2, color=GRID, linewidth=9, solid_capstyle="butt")
            beyond = row.best > row.null_high
            axes.plot(row.best, height, "o", color=LABELS, markerfacecolor=LABELS if beyond else "none", markersize=6)
            place = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8}
            axes.annotate(f"p {small_p(row.p)}", (1.0, height), **place)
        axes.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.set_yticks(range(len(unlearners)), [heading(name) for name in unlearners])
        axes.set_ylim(len(unlearners) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_title(words(attack))
    figure.supxlabel("best balanced accuracy over τ, picked on the judged points", fontsize=9)
    return figure


def tau_curves(rows: Sequence[PaperRuleRow]) -> Figure | None:
    """Draw, per rule (panel), balanced accuracy against τ, a line per unlearning method; None without rows."""
    if not rows:
        return None
    unlearners, attacks = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("unlearner", "attack"))
    figure = Figure(figsize=(3.4 * len(attacks) + 0.6, 3.4), layout="constrained")
    panels = figure.subplots(1, len(attacks), sharex=True, sharey=True, squeeze=False)[0]
    for axes, attack in zip(panels, attacks, strict=True):
        for row in (row for row in rows if row.attack == attack):
            place = unlearners.index(row.unlearner)
            look = {"color": SERIES[place % len(SERIES)], "linestyle": DASHES[place % len(DASHES)]}
            axes.plot(row.taus, row.curve, label=heading(row.unlearner), **look)
        axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.set_title(words(attack))
        axes.set_xlabel("threshold τ on the shadows’ mean confidence")
    panels[0].set_ylabel("balanced accuracy")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(4, len(names)))
    return figure

"""Figures of a setting: AUC by bin of a score, rank correlations of scores, and quantiles along training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from orchestrator.gnq.page.glossary import RULES
from orchestrator.gnq.page.reading import GnqRun, scores_of
from orchestrator.gnq.result.rows import BinRow
from orchestrator.gnq.result.words import words
from orchestrator.report.numbers import percent
from orchestrator.report.result import of_setting
from orchestrator.report.style import DASHES, INK, MARKERS, MUTED, PAPER, SERIES
from orchestrator.report.words import ranking_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SCORES = 5
SHOWN_FIRST = ("gnq_log", "diagonal", "loss_log", "gradient_norm_log", "random")
"""Scores that the figure of bins shows first when there are more than it can hold."""
TRACED = {"gnq": "GNQ", "loss": "loss (nats)", "squared_norm": "‖g‖²"}


def bins(run: GnqRun, setting: str) -> Figure | None:
    """Draw AUC with intervals by bin of each score, a panel a rule, with a band for the first score; None without."""
    rows = [row for row in of_setting(run.result.bins, setting) if row.auc.known]
    if not rows:
        return None
    scores = sorted(scores_of(of_setting(run.result.bins, setting)), key=lambda name: name not in SHOWN_FIRST)
    rules = [name for name in RULES if any(row.rule == name for row in rows)]
    figure = Figure(figsize=(3.7 * len(rules) + 0.5, 3.6), layout="constrained")
    panels = figure.subplots(1, len(rules), sharey=True, squeeze=False)[0]
    for axes, rule in zip(panels, rules, strict=True):
        for index, score in enumerate(scores[:MOST_SCORES]):
            own = [row for row in rows if (row.score, row.rule) == (score, rule)]
            _bin_line(axes, sorted(own, key=lambda row: row.bin), index)
        axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.xaxis.set_major_locator(FixedLocator(sorted({row.bin for row in rows})))
        axes.set_title(f"against {RULES[rule]}", fontsize=9)
    figure.supxlabel("bin of the score: 1 least exposed, the last one most", fontsize=9)
    within(panels[0], "y", 0.0, 1.0)
    panels[0].set_ylabel(f"AUC of {words('lira')} [{percent(run.level, 0)} over pools]")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=MOST_SCORES)
    return figure


def within(axes: Axes, name: str, lowest: float, highest: float) -> None:
    """Cut axis ``name`` (x or y) at values that cannot be: t intervals over few pools reach beyond them."""
    low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
    edge = 0.02 * (highest - lowest)
    cut = max(low, lowest - edge), min(high, highest + edge)
    axes.set_xlim(cut) if name == "x" else axes.set_ylim(cut)


def _bin_line(axes: Axes, rows: list[BinRow], index: int) -> None:
    """Draw one score along its bins: the first with a band, the others thinner with bars."""
    if not rows:
        return
    look: dict[str, Any] = {"color": SERIES[index], "linestyle": DASHES[index], "marker": MARKERS[index]}
    at = np.array([row.bin for row in rows], float) + 0.05 * index  # keeps the bars of several scores apart
    height = np.array([row.auc for row in rows], float)
    axes.plot(
        at, height, markersize=4.5, linewidth=1.8 if not index else 1.1, label=ranking_words(rows[0].score), **look
    )
    if not all(row.auc.bounded for row in rows):
        return
    low, high = np.array([row.auc.ends for row in rows]).T
    if index:
        axes.vlines(at, low, high, color=look["color"], linewidth=0.7, alpha=0.7)
    else:
        axes.fill_between(at, low, high, color=look["color"], alpha=0.16, linewidth=0)


def correlations(run: GnqRun, setting: str) -> Figure | None:
    """Draw the rank correlation of every score with each outcome, controls hollow; None where nothing was measured."""
    rows = [row for row in of_setting(run.result.correlations, setting) if row.spearman.known]
    if not rows:
        return None
    scores = scores_of(of_setting(run.result.correlations, setting))
    outcomes = list(dict.fromkeys(row.outcome for row in rows))
    figure = Figure(figsize=(3.1 * len(outcomes) + 1.6, 0.3 * len(scores) + 1.2), layout="constrained")
    panels = figure.subplots(1, len(outcomes), sharex=True, sharey=True, squeeze=False)[0]
    for axes, outcome in zip(panels, outcomes, strict=True):
        for row in (row for row in rows if row.outcome == outcome):
            height, colour = scores.index(row.score), SERIES[1] if row.control else SERIES[0]
            if row.spearman.bounded:
                axes.plot(row.spearman.ends, [height] * 2, color=colour, linewidth=1.4)
            face = PAPER if row.control else colour
            axes.plot(float(row.spearman), height, "s" if row.control else "o", color=colour, markerfacecolor=face)
        axes.axvline(0.0, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.set_title(words(outcome), fontsize=9)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(scores)), [ranking_words(name) for name in scores])
    panels[0].set_ylim(len(scores) - 0.5, -0.5)
    within(panels[0], "x", -1.0, 1.0)
    figure.supxlabel(f"Spearman correlation [{percent(run.level, 0)} over pools]", fontsize=9)
    return figure


def traces(run: GnqRun, setting: str) -> Figure | None:
    """Draw the median over points, and the middle 80 %, of what was watched at each checkpoint; None without any."""
    found = {row.score: row for row in of_setting(run.result.traces, setting)}
    rows = [found[name] for name in TRACED if name in found]
    if not rows:
        return None
    figure = Figure(figsize=(2.9 * len(rows) + 0.3, 2.7), layout="constrained")
    for axes, row in zip(figure.subplots(1, len(rows), squeeze=False)[0], rows, strict=True):
        steps = np.array(row.steps, float)
        low, median, high = (np.array(curve, float) for curve in (row.low, row.median, row.high))
        axes.fill_between(steps, low, high, color=SERIES[0], alpha=0.18, linewidth=0)
        axes.plot(steps, median, color=SERIES[0], marker="o", markersize=3.5)
        if low.min() > 0 and high.max() > 20 * low.min():
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=min(0.0, float(low.min())))
        axes.set_title(TRACED[row.score])
        axes.tick_params(axis="y", colors=MUTED, labelcolor=INK)
    figure.supxlabel("optimiser steps", fontsize=9)
    return figure

"""Figures of a membership run: AUC, ROC, promised and found rates, number of shadows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from audits.statistics import roc
from audits.statistics.summary import per_target_auc
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.words import words
from orchestrator.report.axes import is_logarithmic, value_axis
from orchestrator.report.numbers import percent
from orchestrator.report.style import ACCESS, DASHES, INK, MARKERS, MUTED, PAPER, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from orchestrator.judgement.estimate import Estimate

CHANCE: dict[str, Any] = {"color": INK, "linewidth": 0.9, "linestyle": (0, (4, 2))}


def forest(run: MiaRun) -> Figure:
    """Draw AUC with its interval for every attack, on ordinary points and on canaries; dots are single targets."""
    rows, attacks = run.rows(), run.attacks
    figure = Figure(figsize=(7.6, 0.36 * len(attacks) + 1.1))
    axes, beside = figure.subplots(1, 2, sharey=True, width_ratios=(2, 1))
    for height, row in enumerate(rows):
        colour = ACCESS.get(row.access, MUTED)
        dots = list(per_target_auc(run.cells[row.attack]).values()) if row.attack in run.cells else []
        axes.plot(dots, [height] * len(dots), "o", markersize=3, color=colour, alpha=0.28, markeredgewidth=0)
        point(axes, row.auc, height, colour, row.above_chance)
    for control in run.own if run.given else run.canaries:
        colour = ACCESS.get(control.access, MUTED)
        point(beside, control.auc, attacks.index(control.attack), colour, control.auc.above(0.5))
    titles = ("the given model", "own models (control)") if run.given else ("ordinary points", "canaries (control)")
    for panel, title in zip((axes, beside), titles, strict=True):
        panel.axvline(0.5, **CHANCE)
        panel.set_title(title)
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
    axes.set_yticks(range(len(attacks)), [words(name) for name in attacks])
    axes.set_ylim(len(attacks) - 0.5, -0.5)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.45), max(high, 0.6))
    beside.set_xlim(0.4, 1.02)
    figure.subplots_adjust(wspace=0.12, bottom=0.5 / figure.get_figheight(), top=1.0 - 0.5 / figure.get_figheight())
    figure.supxlabel(f"AUC with {percent(run.level, 0)} interval over {run.over} (dashed: chance)", fontsize=9, y=0.0)
    legend(figure, run)
    return figure


def point(axes: Axes, found: Estimate, height: float, colour: str, filled: bool) -> None:
    """Draw an estimate with its interval at a height."""
    axes.plot(found.ends, [height] * 2, color=colour, linewidth=2.0, solid_capstyle="butt")
    axes.plot(
        float(found), height, "o", color=colour, markerfacecolor=colour if filled else PAPER, markeredgewidth=1.4,
        markersize=6,
    )  # fmt: skip


def legend(figure: Figure, run: MiaRun) -> None:
    """Explain colours and markers in one line above the panels."""
    from matplotlib.lines import Line2D

    seen = dict.fromkeys(row.access for row in run.rows())
    marks = [Line2D([], [], color=ACCESS.get(name, MUTED), linewidth=3, label=words(name)) for name in seen]
    shape: dict[str, Any] = {"color": MUTED, "linestyle": "", "marker": "o"}
    marks.append(Line2D([], [], **shape, markersize=6, label="above chance"))
    marks.append(Line2D([], [], **shape, markersize=6, markerfacecolor="none", label="not above"))
    marks.append(Line2D([], [], **shape, markersize=3, alpha=0.5, label="single target"))
    figure.legend(handles=marks, loc="upper center", ncols=len(marks), borderaxespad=0.0, handletextpad=0.4)


def roc_curves(run: MiaRun) -> Figure | None:
    """Draw the targets' ROC curves averaged at equal FPR, on logarithmic axes; None without scores."""
    if not run.scores:
        return None
    unseen = max(int((~cell.member).sum()) for cell in run.cells.values())
    targets = max(len(np.unique(cell.target)) for cell in run.cells.values())
    lowest = 0.5 * targets / unseen
    grid = np.geomspace(lowest, 1.0, 160)
    figure = Figure(figsize=(5.6, 5.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(grid, grid, **CHANCE)
    for index, attack in enumerate(name for name in run.attacks if name in run.cells):
        cell = run.cells[attack]
        curves = [
            roc.tpr_at_fpr(roc.roc(cell.scores[cell.target == name], cell.member[cell.target == name]), grid)
            for name in np.unique(cell.target)
        ]
        look: dict[str, Any] = {"color": SERIES[index % len(SERIES)], "linestyle": DASHES[index % len(DASHES)]}
        axes.plot(grid, np.mean(curves, axis=0), label=words(attack), **look)
    for rate in run.rates:
        axes.axvline(rate, color=MUTED, linewidth=0.7)
    ticks = [tick for tick in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0) if tick >= lowest]
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g}\N{NO-BREAK SPACE}%"))
    axes.axvspan(lowest, roc.EXPECTED_FALSE_POSITIVES / unseen, color=MUTED, alpha=0.14, linewidth=0)
    axes.set(xlabel="false-positive rate (non-members called members)", ylabel="true-positive rate")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def rates(run: MiaRun) -> Figure:
    """Draw found over promised false-positive rates of each attack: targets' non-members, and null models."""
    figure = Figure(figsize=(7.6, 0.4 * len(run.attacks) + 1.1), layout="constrained")
    panels = figure.subplots(1, len(run.rates), sharey=True, squeeze=False)[0]
    for axes, rate in zip(panels, run.rates, strict=True):
        for height, row in enumerate(run.rows(rate=rate)):
            for shift, found, broken, colour, marker in (
                (-0.15, row.found_fpr, row.found_fpr_off, SERIES[0], "o"),
                (0.15, row.null_fpr, row.null_fpr_off, SERIES[2], "s"),
            ):
                if found.known:
                    axes.plot(found.ends, [height + shift] * 2, color=colour, linewidth=1.6)
                    face = PAPER if broken else colour
                    axes.plot(float(found), height + shift, marker, color=colour, markerfacecolor=face, markersize=5)
        axes.axvline(rate, **CHANCE)
        axes.set_title(f"promised {percent(rate, 0)}")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g}\N{NO-BREAK SPACE}%"))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0.0)
    panels[0].set_yticks(range(len(run.attacks)), [words(name) for name in run.attacks])
    panels[0].set_ylim(len(run.attacks) - 0.5, -0.5)
    text = "found: circles, targets’ non-members; squares, null models"
    figure.supxlabel("found: non-members of the given model" if run.given else text, fontsize=9)
    return figure


def shadows(run: MiaRun) -> Figure | None:
    """Draw AUC and TPR against the number of shadows; None where there is one number."""
    counts = tuple(sorted({float(row.shadows) for row in run.shadows}))
    if len(counts) < 2:
        return None
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    names = {"auc": "AUC", "tpr": f"TPR at a promised {percent(run.rates[0], 0)}"}
    for axes, (name, title) in zip(figure.subplots(1, 2), names.items(), strict=True):
        for index, attack in enumerate(dict.fromkeys(row.attack for row in run.shadows)):
            own = [row for row in run.shadows if row.attack == attack and (name == "auc" or not row.void)]
            found = [row.auc if name == "auc" else row.tpr for row in own]
            at = [row.shadows for row in own]
            look: dict[str, Any] = {"color": SERIES[index], "linestyle": DASHES[index], "marker": MARKERS[index]}
            axes.plot(at, list(map(float, found)), markersize=4, label=words(attack), **look)
            low, high = ([each.ends[end] for each in found] for end in (0, 1))
            axes.fill_between(at, low, high, color=SERIES[index], alpha=0.13, linewidth=0)
        value_axis(axes, counts, logarithmic=is_logarithmic(counts))
        axes.set_title(title)
        axes.axhline(0.5 if name == "auc" else run.rates[0], **CHANCE)
    figure.supxlabel("shadows" if run.given else "shadows of each pool", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure

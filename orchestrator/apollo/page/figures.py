"""Figures of one setting: AUC with intervals, ROC curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from numpy.typing import NDArray

from audits.statistics import intervals, roc
from audits.statistics.summary import Cell, per_target_auc
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.words import heading, words
from orchestrator.report.numbers import percent
from orchestrator.report.style import ACCESS, DASHES, INK, MUTED, PAPER, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDED = ("apollo", "u_lira", "lira")
MOST_CURVES = 8
MOST_PANELS = 5
FIRST = (
    *("apollo", "u_lira", "lira", "random_directions", "single_query", "label_gap", "apollo_offline", "loss_threshold"),
    *("apollo_plus", "rmia", "ruli", "apollo_ladder", "apollo_no_fit", "apollo_under", "apollo_over"),
)
"""Attacks that a ROC figure shows first when there are more than it can hold; the first have the same colour in all."""


def access_colour(access: str) -> str:
    """Return the colour of an access level."""
    return ACCESS.get(access, MUTED)


def forest(run: ApolloRun) -> Figure:
    """Draw AUC with its interval for every unlearner (panel) and attack (line); dots are single targets."""
    attacks = run.attacks
    columns = min(MOST_PANELS, len(run.unlearners))
    lines = -(-len(run.unlearners) // columns)
    figure = Figure(figsize=(max(6.0, 2.1 * columns + 1.2), (0.34 * len(attacks) + 0.35) * lines + 0.9))
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(run.unlearners) :]:
        axes.set_visible(False)
    for axes in panels[max(0, len(run.unlearners) - columns) : len(run.unlearners)]:
        axes.tick_params(labelbottom=True)
    for axes, unlearner in zip(panels, run.unlearners, strict=False):
        for row in (row for row in run.rows() if row.unlearner == unlearner):
            height = attacks.index(row.attack)
            colour = access_colour(row.access)
            cell = run.cells.get((unlearner, row.attack))
            dots = list(per_target_auc(cell).values()) if cell else []
            axes.plot(dots, [height] * len(dots), "o", markersize=3, color=colour, alpha=0.28, markeredgewidth=0)
            axes.plot(row.auc.ends, [height] * 2, color=colour, linewidth=2.0, solid_capstyle="butt")
            face = colour if row.above_chance else PAPER
            look = {"color": colour, "markerfacecolor": face, "markeredgewidth": 1.4, "markersize": 6}
            axes.plot(float(row.auc), height, "o", **look)
        axes.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.set_title(heading(unlearner) + (" (control)" if run.control_of(unlearner) else ""))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    panels[0].set_yticks(range(len(attacks)), [words(name) for name in attacks])
    panels[0].set_ylim(len(attacks) - 0.5, -0.5)
    low, high = panels[0].get_xlim()
    panels[0].set_xlim(min(low, 0.4), max(high, 0.7))
    margin = 0.5 / figure.get_figheight()
    between = 0.5 / (0.34 * len(attacks))
    figure.subplots_adjust(wspace=0.09, hspace=between, bottom=margin, top=1.0 - margin)
    over = "points and shadows" if run.result.given else "targets"
    figure.supxlabel(
        f"AUC with {percent(run.result.level, 0)} interval over {over} (dashed: chance)", fontsize=9, y=0.0
    )
    _forest_legend(figure, run)
    return figure


def _forest_legend(figure: Figure, run: ApolloRun) -> None:
    """Explain colours and markers in one line above the panels."""
    from matplotlib.lines import Line2D

    seen = dict.fromkeys(row.access for row in run.rows())
    marks = [Line2D([], [], color=access_colour(name), linewidth=3, label=words(name)) for name in seen]
    shape: dict[str, Any] = {"color": MUTED, "linestyle": "", "marker": "o"}
    marks.append(Line2D([], [], **shape, markersize=6, label="above chance (Holm)"))
    marks.append(Line2D([], [], **shape, markersize=6, markerfacecolor="none", label="not above chance"))
    marks.append(Line2D([], [], **shape, markersize=3, alpha=0.5, label="single target"))
    figure.legend(handles=marks, loc="upper center", ncols=len(marks), borderaxespad=0.0, handletextpad=0.4)


def roc_curves(run: ApolloRun, *, logarithmic: bool) -> Figure:
    """Draw one ROC panel per unlearner: targets' curves averaged at equal FPR, with bands for two attacks."""
    unseen = min(int((~cell.member).sum()) for cell in run.cells.values())
    per_target = unseen / max(np.unique(next(iter(run.cells.values())).target).size, 1)
    lowest = 0.5 / per_target
    grid = np.geomspace(lowest, 1.0, 160) if logarithmic else np.linspace(0.0, 1.0, 201)
    columns = min(3, len(run.unlearners))
    lines = -(-len(run.unlearners) // columns)
    figure = Figure(figsize=(2.75 * columns + 0.4, 2.75 * lines + 0.6), layout="constrained")
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(run.unlearners) :]:
        axes.set_visible(False)
    for axes in panels[max(0, len(run.unlearners) - columns) : len(run.unlearners)]:
        axes.tick_params(labelbottom=True)
    for axes, unlearner in zip(panels, run.unlearners, strict=False):
        axes.plot(grid, grid, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        for index, (attack, colour) in enumerate(attack_colours(run).items()):
            cell = run.cells.get((unlearner, attack))
            if cell is not None:
                style = {"color": colour, "linestyle": DASHES[index % len(DASHES)]}
                _curve(axes, cell, grid, run.result.level, style, band=attack in BANDED)
        axes.axvline(run.fpr, color=MUTED, linewidth=0.7)
        axes.set_title(heading(unlearner))
        if logarithmic:
            _log_axes(axes, lowest, roc.EXPECTED_FALSE_POSITIVES / unseen)
        else:
            axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    figure.supxlabel("false-positive rate (unseen points called unlearned)", fontsize=9)
    figure.supylabel("true-positive rate", fontsize=9)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4)
    return figure


def shown_attacks(run: ApolloRun) -> list[str]:
    """Return the attacks that a ROC figure shows: all of them, or as many as there are colours, by name."""
    if len(run.attacks) <= MOST_CURVES:
        return run.attacks
    chosen = [name for name in FIRST if name in run.attacks][:MOST_CURVES]
    chosen += [name for name in run.attacks if name not in chosen][: MOST_CURVES - len(chosen)]
    return [name for name in run.attacks if name in chosen]


def attack_colours(run: ApolloRun) -> dict[str, str]:
    """Return the colour of every attack shown: its own for the first names, what is left for the others."""
    shown = shown_attacks(run)
    own = {name: SERIES[FIRST.index(name)] for name in shown if name in FIRST[: MOST_CURVES - 1]}
    left = [colour for colour in SERIES if colour not in own.values()]
    return {name: own[name] if name in own else left.pop(0) for name in shown}


def _curve(
    axes: Axes, cell: Cell, grid: NDArray[np.float64], level: float, style: dict[str, Any], *, band: bool
) -> None:
    """Draw the mean of the targets' ROC curves at equal FPR, with a t band over targets if wanted."""
    curves = np.stack(
        [
            roc.tpr_at_fpr(roc.roc(cell.scores[cell.target == name], cell.member[cell.target == name]), grid)
            for name in np.unique(cell.target)
        ]
    )
    mean = curves.mean(axis=0)
    axes.plot(grid, mean, label=words(cell.attack), **style)
    if band and len(curves) > 1:
        half = intervals.student_quantile(level, len(curves) - 1) * curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
        low, high = np.clip(mean - half, 1e-9, 1), np.clip(mean + half, 0, 1)
        axes.fill_between(grid, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _log_axes(axes: Axes, lowest: float, resolvable: float) -> None:
    """Set log-log axes with percentages and shade the rates that the sample cannot resolve."""
    ticks = [tick for tick in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0) if tick >= lowest]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_label_coords(0.5, -0.1)
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g}\N{NO-BREAK SPACE}%"))
    axes.axvspan(lowest, resolvable, color=MUTED, alpha=0.14, linewidth=0)

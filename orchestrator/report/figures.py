"""Figures of one setting: AUC with intervals, ROC curves, privacy against utility, heat maps over radii."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from numpy.typing import NDArray

from audits.evaluation import intervals, roc
from audits.evaluation.summary import Cell, per_target_auc
from orchestrator.report.reading import Row, Run, heading, percent, words
from orchestrator.report.style import DASHES, INK, LABELS, MARKERS, MUTED, PAPER, POSTERIORS, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDED = ("apollo", "lira")
ATTACK_COLOURS = {
    name: SERIES[index]
    for index, name in enumerate(
        ["apollo", "lira", "random_directions", "single_query", "label_gap", "apollo_offline", "loss_threshold"]
    )
}


def access_colour(access: str) -> str:
    """Return the colour of an access level."""
    return LABELS if access == "labels" else POSTERIORS


def forest(run: Run) -> Figure:
    """Draw AUC with its interval for every unlearner (panel) and attack (line); dots are single targets."""
    attacks = run.attacks
    figure = Figure(figsize=(max(6.0, 2.1 * len(run.unlearners) + 1.2), 0.34 * len(attacks) + 1.25))
    panels = figure.subplots(1, len(run.unlearners), sharex=True, sharey=True, squeeze=False)[0]
    for axes, unlearner in zip(panels, run.unlearners, strict=True):
        for row in (row for row in run.rows() if row["unlearner"] == unlearner):
            height = attacks.index(row["attack"])
            colour = access_colour(row["access"])
            cell = run.cells.get((unlearner, row["attack"]))
            dots = list(per_target_auc(cell).values()) if cell else []
            axes.plot(dots, [height] * len(dots), "o", markersize=3, color=colour, alpha=0.28, markeredgewidth=0)
            axes.plot(
                [row["auc_low"], row["auc_high"]], [height] * 2, color=colour, linewidth=2.0, solid_capstyle="butt"
            )
            face = colour if row["above_chance"] else PAPER
            axes.plot(row["auc"], height, "o", markersize=6, color=colour, markerfacecolor=face, markeredgewidth=1.4)
        axes.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.set_title(heading(unlearner) + (" (control)" if words(unlearner).endswith("(control)") else ""))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    panels[0].set_yticks(range(len(attacks)), [words(name) for name in attacks])
    panels[0].set_ylim(len(attacks) - 0.5, -0.5)
    low, high = panels[0].get_xlim()
    panels[0].set_xlim(min(low, 0.4), max(high, 0.7))
    figure.subplots_adjust(wspace=0.09, bottom=0.5 / figure.get_figheight(), top=1.0 - 0.5 / figure.get_figheight())
    figure.supxlabel(f"AUC with {percent(run.level, 0)} interval over targets (dashed: chance)", fontsize=9, y=0.0)
    _forest_legend(figure, run)
    return figure


def _forest_legend(figure: Figure, run: Run) -> None:
    """Explain colours and markers in one line above the panels."""
    from matplotlib.lines import Line2D

    seen = dict.fromkeys(row["access"] for row in run.rows())
    marks = [Line2D([], [], color=access_colour(name), linewidth=3, label=words(name)) for name in seen]
    shape: dict[str, Any] = {"color": MUTED, "linestyle": "", "marker": "o"}
    marks.append(Line2D([], [], **shape, markersize=6, label="above chance (Holm)"))
    marks.append(Line2D([], [], **shape, markersize=6, markerfacecolor="none", label="not above chance"))
    marks.append(Line2D([], [], **shape, markersize=3, alpha=0.5, label="single target"))
    figure.legend(handles=marks, loc="upper center", ncols=len(marks), borderaxespad=0.0, handletextpad=0.4)


def roc_curves(run: Run, *, logarithmic: bool) -> Figure:
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
        for index, attack in enumerate(run.attacks):
            cell = run.cells.get((unlearner, attack))
            if cell is not None:
                _curve(axes, cell, grid, index, run.level, band=attack in BANDED)
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


def _curve(axes: Axes, cell: Cell, grid: NDArray[np.float64], index: int, level: float, *, band: bool) -> None:
    """Draw the mean of the targets' ROC curves at equal FPR, with a t band over targets if wanted."""
    curves = np.stack(
        [
            roc.tpr_at_fpr(roc.roc(cell.scores[cell.target == name], cell.member[cell.target == name]), grid)
            for name in np.unique(cell.target)
        ]
    )
    colour = ATTACK_COLOURS.get(cell.attack, SERIES[index % len(SERIES)])
    mean = curves.mean(axis=0)
    axes.plot(grid, mean, color=colour, linestyle=DASHES[index % len(DASHES)], label=words(cell.attack))
    if band and len(curves) > 1:
        half = intervals.student_quantile(level, len(curves) - 1) * curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
        axes.fill_between(
            grid, np.clip(mean - half, 1e-9, 1), np.clip(mean + half, 0, 1), color=colour, alpha=0.15, linewidth=0
        )


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


def best_label_row(run: Run, unlearner: str) -> Row | None:
    """Return the row of the label-only attack with the highest AUC."""
    rows = [row for row in run.rows() if row["unlearner"] == unlearner and row["access"] == "labels"]
    return max(rows, key=lambda row: float(row["auc"]), default=None)


def privacy_utility(run: Run) -> Figure | None:
    """Draw the best label-only AUC of each unlearner against the mean test accuracy of its models."""
    points = []
    for index, unlearner in enumerate(run.unlearners):
        row, use = best_label_row(run, unlearner), run.utility(unlearner)
        if row is not None and not np.isnan(use["test_accuracy"]):
            points.append((index, unlearner, use["test_accuracy"], row))
    if not points:
        return None
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, unlearner, accuracy, row in points:
        error = [[row["auc"] - row["auc_low"]], [row["auc_high"] - row["auc"]]]
        axes.errorbar(
            accuracy,
            row["auc"],
            yerr=error,
            fmt=MARKERS[index % len(MARKERS)],
            color=SERIES[index % len(SERIES)],
            markersize=7,
            capsize=0,
            label=f"{heading(unlearner)}: {words(row['attack'])}",
        )
    axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.set(
        xlabel="test accuracy of the unlearned models (mean over targets)", ylabel="AUC of the best label-only attack"
    )
    figure.legend(loc="outside right upper", title="unlearner: attack", alignment="left", title_fontsize=8.5)
    return figure


def heat_maps(maps: dict[str, Any], unlearners: list[str]) -> Figure | None:
    """Draw TPR and FPR over (UNDER radius, OVER radius), one column per unlearner, as result.json holds them."""
    names = [name for name in unlearners if name in maps]
    if not names:
        return None
    figure = Figure(figsize=(2.05 * len(names) + 1.1, 4.5), layout="constrained")
    panels = figure.subplots(2, len(names), sharex=True, sharey=True, squeeze=False)
    highest = max(float(np.max(maps[name][key])) for name in names for key in ("tpr", "fpr"))
    for line, key in enumerate(("tpr", "fpr")):
        image = None
        for axes, name in zip(panels[line], names, strict=True):
            under, over = maps[name]["under_radius"], maps[name]["over_radius"]
            image = axes.imshow(maps[name][key], origin="lower", cmap="cividis", vmin=0.0, vmax=highest, aspect="equal")
            axes.grid(visible=False)
            shown = range(0, len(over), max(1, len(over) // 4)), range(0, len(under), max(1, len(under) // 4))
            axes.set_xticks(shown[0], [f"{over[i]:.2g}" for i in shown[0]])
            axes.set_yticks(shown[1], [f"{under[i]:.2g}" for i in shown[1]])
            if line == 0:
                axes.set_title(heading(name))
        if image is not None:
            figure.colorbar(image, ax=list(panels[line]), label=key.upper(), shrink=0.9, pad=0.01)
    figure.supxlabel("OVER radius", fontsize=9)
    figure.supylabel("UNDER radius", fontsize=9)
    return figure

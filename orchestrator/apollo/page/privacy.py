"""Privacy against utility: what each unlearning method costs, and what it still gives away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from audits.statistics.discoveries import judge_among
from audits.statistics.intervals import student_quantile
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.page.swept import panels, rows_along
from orchestrator.apollo.result.words import heading, words
from orchestrator.report.axes import is_logarithmic, value_axis
from orchestrator.report.numbers import percent
from orchestrator.report.style import DASHES, INK, MARKERS, SERIES
from orchestrator.report.swept import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 4


def accuracy_losses(run: ApolloRun, unlearner: str) -> list[float]:
    """Return, per target, the test accuracy that unlearning cost; from ``identity`` where it was not kept itself."""
    kept = [row for row in run.result.utility if run.control_of(row.unlearner) == "identity"]
    whole = {row.target: row.test_accuracy for row in kept if not run.result.given}  # which is not its original there
    losses = []
    for row in run.result.utility:
        before = whole.get(row.target) if row.test_accuracy_before is None else row.test_accuracy_before
        if row.unlearner == unlearner and before is not None:
            losses.append(float(before) - float(row.test_accuracy))
    return losses


def privacy_utility(run: ApolloRun) -> Figure | None:
    """Draw the best label-only AUC of each unlearner against the test accuracy it loses, both with intervals."""
    points = []
    for index, unlearner in enumerate(run.unlearners):
        row, losses = run.best_label_row(unlearner), accuracy_losses(run, unlearner)
        if row is not None and losses:
            points.append((index, unlearner, losses, row))
    if not points:
        return None
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, unlearner, losses, row in points:
        axes.errorbar(
            float(np.mean(losses)),
            float(row.auc),
            xerr=half_width(losses, run.result.level),
            yerr=np.array([row.auc.errors]).T,
            fmt=MARKERS[index % len(MARKERS)],
            color=SERIES[index % len(SERIES)],
            markersize=7,
            elinewidth=1.0,
            capsize=0,
            label=f"{heading(unlearner)}: {words(row.attack)}",
        )
    axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.set(xlabel="test accuracy lost by unlearning (mean over targets)", ylabel="AUC of the best label-only attack")
    figure.legend(loc="outside right upper", title="unlearner: attack", alignment="left", title_fontsize=8.5)
    return figure


def half_width(values: Sequence[float], level: float) -> float:
    """Return the half width of the t interval of a mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    return student_quantile(level, len(values) - 1) * float(np.std(values, ddof=1)) / float(np.sqrt(len(values)))


def setting_utility(run: ApolloRun) -> Figure | None:
    """Draw, for every swept quantity that changes the models, test accuracy along it and AUC against that accuracy.

    The attack is that of the exposure list. None for runs without ``setting_utility`` (settings that share models).
    """
    found = {(row.setting, row.unlearner): row for row in run.result.setting_utility}
    swept = panels(run) if found else []
    if not swept:
        return None
    attack = judge_among(run.attacks)
    columns = min(MOST_COLUMNS, len(swept))
    lines = -(-len(swept) // columns)
    figure = Figure(figsize=(3.0 * columns + 0.3, 4.8 * lines + 0.6), layout="constrained")
    grid = figure.subplots(2 * lines, columns, squeeze=False)
    for axes in grid.ravel():
        axes.set_visible(False)
    for place, panel in enumerate(swept):
        line, column = divmod(place, columns)
        pair = grid[2 * line, column], grid[2 * line + 1, column]
        for axes in pair:
            axes.set_visible(True)
        _utility_panel(pair, run, panel, attack, {key: row.test_accuracy for key, row in found.items()})
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(5, len(names)))
    return figure


def _utility_panel(
    pair: tuple[Axes, Axes], run: ApolloRun, panel: Panel, attack: str, accuracy: dict[tuple[str, str], float]
) -> None:
    """Draw accuracy against the swept value (upper) and AUC against accuracy, joined along the value (lower)."""
    upper, lower = pair
    for index, unlearner in enumerate(run.unlearners):
        known = [
            (value, row)
            for value, row in rows_along(run, panel, unlearner, attack)
            if (row.setting, unlearner) in accuracy
        ]
        if not known:
            continue
        style: dict[str, Any] = {
            "color": SERIES[index % len(SERIES)],
            "marker": MARKERS[index % len(MARKERS)],
            "linestyle": DASHES[index % len(DASHES)],
            "linewidth": 1.2,
            "markersize": 4.5,
        }
        heights = [accuracy[row.setting, unlearner] for _, row in known]
        upper.plot([value for value, _ in known], heights, label=heading(unlearner), **style)
        lower.plot(heights, [float(row.auc) for _, row in known], **style)
    value_axis(upper, panel.values, logarithmic=is_logarithmic(panel.values))
    upper.set(xlabel=panel.axis, ylabel="test accuracy")
    lower.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    lower.set(xlabel="test accuracy", ylabel=f"AUC of {words(attack)}")
    for axis in (upper.yaxis, lower.xaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: percent(value, 0)))

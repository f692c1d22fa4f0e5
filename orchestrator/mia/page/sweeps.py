"""Figures of a sweep of membership audits: AUC and TPR of each attack against the swept value."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from orchestrator.mia.page.figures import CHANCE
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.words import words
from orchestrator.report.axes import is_logarithmic, value_axis
from orchestrator.report.numbers import percent
from orchestrator.report.style import DASHES, MARKERS, MUTED, SERIES
from orchestrator.report.swept import Axes, panels

AXES = Axes(
    {
        "split.shadows": "shadows of each pool",
        "recipe.epochs": "epochs of training",
        "split.train_size": "points that a model trains on",
    }
)


def sweep_curves(run: MiaRun) -> Figure | None:
    """Draw AUC and TPR against each swept value; None for runs that sweep no number."""
    found = panels(run.result.plan, run.result.settings, run.result.own_setting, AXES)
    if not found:
        return None
    figure = Figure(figsize=(7.6, 3.4 * len(found)), layout="constrained")
    names = {"auc": "AUC", "tpr": f"TPR at a promised {percent(run.rates[0], 0)}"}
    grid = figure.subplots(len(found), 2, squeeze=False)
    for line, panel in zip(grid, found, strict=True):
        for axes, (name, title) in zip(line, names.items(), strict=True):
            for index, attack in enumerate(run.attacks):
                rows = [run.row(attack, setting) for setting in panel.settings]
                known = [
                    (value, row.auc if name == "auc" else row.tpr)
                    for value, row in zip(panel.values, rows, strict=True)
                    if row is not None and (name == "auc" or not row.void)
                ]
                style = index % len(SERIES)
                look: dict[str, Any] = {"color": SERIES[style], "linestyle": DASHES[style], "marker": MARKERS[style]}
                at = [value for value, _ in known]
                axes.plot(at, [float(each) for _, each in known], markersize=4, label=words(attack), **look)
                ends = ([each.ends[end] for _, each in known] for end in (0, 1))
                axes.fill_between(at, *ends, color=SERIES[style], alpha=0.1, linewidth=0)
            value_axis(axes, panel.values, logarithmic=is_logarithmic(panel.values))
            axes.set(title=title, xlabel=panel.axis)
            axes.axhline(0.5 if name == "auc" else run.rates[0], **CHANCE)
            own = dict(zip(panel.settings, panel.values, strict=True)).get(run.result.own_setting)
            if own is not None:
                axes.axvline(own, color=MUTED, linewidth=0.7)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5)
    return figure

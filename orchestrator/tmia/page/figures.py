"""Figures of single settings: rates with intervals, confidence and loss of members and others, the fitted map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from orchestrator.judgement.estimate import Estimate
from orchestrator.report.style import INK, MARKERS, MUTED, PAPER, SERIES
from orchestrator.report.words import access_level
from orchestrator.tmia.page.numbers import unless_void
from orchestrator.tmia.result.rows import TmiaCell
from orchestrator.tmia.result.run import ALL, NONE, TmiaRun
from orchestrator.tmia.result.words import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTILES = np.linspace(0.0, 1.0, 101)
GROUP_LOOKS = {
    "trained on them": {"color": SERIES[1], "linestyle": "-"},
    "did not": {"color": SERIES[0], "linestyle": "--"},
    "null models": {"color": SERIES[7], "linestyle": ":"},
}


@dataclass(frozen=True)
class Axis:
    """One column of a forest: the rate drawn, its title, the value that a dashed line marks, which marks are solid."""

    rate: Callable[[TmiaCell], Estimate]
    title: str
    reference: float | None
    filled: Callable[[TmiaCell], bool]


def precision_and_coverage(run: TmiaRun, setting: str) -> Figure | None:
    """Draw precision and coverage with intervals, attack × selection, chance dashed; hollow: not above chance.

    What is void is left out.
    """
    rows = run.rows(setting)
    expected = next((row.chance for row in rows if row.chance is not None), None)
    return _forest(
        run,
        rows,
        [
            Axis(lambda row: unless_void(row, row.precision), "precision", expected, lambda row: row.above_chance),
            Axis(lambda row: unless_void(row, row.coverage), "coverage", None, lambda row: row.above_chance),
        ],
    )


def false_positive_rates(run: TmiaRun, setting: str) -> Figure | None:
    """Draw the false-positive rate on targets and on null models against β, for attacks that promise a rate.

    Hollow: above β also after Holm's correction over the cells of the run.
    """
    rows = [row for row in run.rows(setting) if row.promised is not None]
    if not rows:
        return None
    own = Axis(
        lambda row: row.fpr, "targets that did not train on the point", rows[0].beta, lambda row: not row.fpr_off
    )
    null = Axis(lambda row: row.null_fpr, "null models", rows[0].beta, lambda row: not row.null_fpr_off)
    return _forest(run, rows, [own, null])


def _forest(
    run: TmiaRun,
    rows: Sequence[TmiaCell],
    columns: Sequence[Axis],
) -> Figure | None:
    """Draw attacks as lines and selections as colours."""
    attacks = [name for name in run.attacks if any(row.attack == name for row in rows)]
    selections = [name for name in run.selections if any(row.selection == name for row in rows)]
    if not any(axis.rate(row).known for row in rows for axis in columns):
        return None
    step = 0.8 / len(selections)
    height = max(2.2, len(attacks) * (0.09 * len(selections) + 0.12) + 1.0)
    figure = Figure(figsize=(8.2, height), layout="constrained")
    same = len({axis.reference for axis in columns}) == 1  # one promise: rates beside each other on one scale
    panels = figure.subplots(1, len(columns), sharex=same, sharey=True, squeeze=False)[0]
    for axes, column in zip(panels, columns, strict=True):
        for row in rows:
            index = selections.index(row.selection)
            place = attacks.index(row.attack) + (index - (len(selections) - 1) / 2) * step
            rate = column.rate(row)
            if rate.known:
                _interval(axes, rate, place, index, column.filled(row))
            else:
                _without(axes, place, index, "void" if row.void else "0/0")
        if column.reference is not None:
            axes.axvline(column.reference, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        _attack_lines(axes, rows, attacks)
        axes.set_title(column.title)
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    panels[0].set_yticks(range(len(attacks)), [words(name) for name in attacks])
    panels[0].set_ylim(len(attacks) - 0.45, -0.55)
    _selection_legend(figure, selections)
    return figure


def _interval(axes: Axes, rate: Estimate, height: float, index: int, solid: bool) -> None:
    """Draw one rate as a mark on its interval."""
    colour = SERIES[index % len(SERIES)]
    if rate.bounded:
        axes.plot(rate.ends, [height] * 2, color=colour, linewidth=1.3)
    look: dict[str, Any] = {"markerfacecolor": colour if solid else PAPER, "markeredgewidth": 1.0, "markersize": 4.5}
    axes.plot(float(rate), height, MARKERS[index % len(MARKERS)], color=colour, **look)


def _without(axes: Axes, height: float, index: int, word: str) -> None:
    """Say at the edge why no rate is drawn."""
    look: dict[str, Any] = {"color": SERIES[index % len(SERIES)], "fontsize": 6, "va": "center"}
    axes.text(0.01, height, word, transform=axes.get_yaxis_transform(), **look)


def _attack_lines(axes: Axes, rows: Sequence[TmiaCell], attacks: Sequence[str]) -> None:
    """Separate attacks by thin lines, levels of access by a strong one."""
    access = {row.attack: access_level(row.access) for row in rows}
    for place, (one, other) in enumerate(pairwise(attacks)):
        changes = access[one] != access[other]
        axes.axhline(place + 0.5, color=MUTED, linewidth=1.0 if changes else 0.3, alpha=1.0 if changes else 0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _selection_legend(figure: Figure, selections: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    looks = zip(selections, SERIES, MARKERS, strict=False)
    marks = [
        Line2D([], [], color=colour, marker=mark, markersize=4.5, label=words(name)) for name, colour, mark in looks
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=len(marks))


def confidences(run: TmiaRun) -> Figure | None:
    """Draw the distribution of confidence in y* of selected candidates, by whether the model trained on them (Fig. 4).

    Confidence is the exponential of minus the loss, as the attack with posteriors sees it.
    """
    return _distributions(run, np.exp, "confidence in y*", null=False)


def losses(run: TmiaRun) -> Figure | None:
    """Draw the distribution of log loss: targets that trained on a candidate, other targets, null models (Fig. 6)."""
    return _distributions(run, lambda statistic: np.maximum(-statistic, 1e-7), "log loss at y*", null=True)


def _distributions(
    run: TmiaRun, quantity: Callable[[NDArray[np.float64]], NDArray[np.float64]], title: str, *, null: bool
) -> Figure | None:
    """Draw distribution functions over pairs: a line of panels a setting, a panel a selection."""
    settings = [name for name in run.shown if run.scores and (run.scores["setting"] == name).any()]
    selections = [ALL, *(name for name in run.selectors if f"q_{name}" in run.scores)]
    if not settings:
        return None
    size = (2.3 * len(selections) + 0.6, 2.2 * len(settings) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(settings), len(selections), sharex=True, sharey=True, squeeze=False)
    for line, setting in zip(grid, settings, strict=True):
        for axes, selection in zip(line, selections, strict=True):
            for name, statistic in _groups(run, setting, selection).items():
                if statistic.size and (null or name != "null models"):
                    shown = np.quantile(quantity(statistic), QUANTILES)
                    axes.plot(shown, QUANTILES, label=name, drawstyle="steps-post", **GROUP_LOOKS[name])
            if null:
                axes.set_xscale("log")
        line[0].set_ylabel(setting if len(settings) > 1 else "share of pairs")
    for axes, selection in zip(grid[0], selections, strict=True):
        axes.set_title(words(selection))
    figure.supxlabel(title, fontsize=9)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure


def _groups(run: TmiaRun, setting: str, selection: str) -> dict[str, NDArray[np.float64]]:
    """Return minus the losses of a setting's selected candidates, by what the model had to do with them."""
    scores = run.scores
    rows = (scores["setting"] == setting) & np.isfinite(scores["statistic"])
    if selection not in (ALL, NONE):
        rows &= scores[f"q_{selection}"].astype(bool)
    target, member = scores["group"] == "target", scores["member"].astype(bool)
    chosen = (target & member, target & ~member, scores["group"] == "null")
    return {name: scores["statistic"][rows & one] for name, one in zip(GROUP_LOOKS, chosen, strict=True)}


def reconstruction(run: TmiaRun) -> Figure | None:
    """Draw the confidence of reference models against HopSkipJump's signed distance, with the fitted map (Fig. 5)."""
    held = {row.setting: row for row in run.result.reconstruction if row.setting in run.shown}
    if not held:
        return None
    figure = Figure(figsize=(3.4 * len(held) + 0.4, 2.9), layout="constrained")
    panels = figure.subplots(1, len(held), sharey=True, squeeze=False)[0]
    for axes, (setting, row) in zip(panels, held.items(), strict=True):
        points, curve = row.points, row.curve
        axes.plot(points.distance, points.confidence, "o", color=SERIES[0], markersize=3, alpha=0.35, mew=0)
        axes.plot(curve.distance, curve.confidence, color=SERIES[1])
        axes.axvline(0.0, color=MUTED, linewidth=0.7)
        lost = f", {row.dropped} dropped" if row.dropped else ""
        axes.set_title(f"{setting}: {row.map}, RMSE {row.rmse:.3f}{lost}")
        axes.set_ylim(-0.03, 1.03)
    figure.supxlabel("signed distance to the boundary of y*", fontsize=9)
    panels[0].set_ylabel("confidence in y*")
    return figure

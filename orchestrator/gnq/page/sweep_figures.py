"""Figures over the settings of a sweep: attack by bin, level of uniqueness, and attack against the share removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, PercentFormatter

from orchestrator.gnq.page.figures import within
from orchestrator.gnq.page.reading import BEST_SHADOWS, CONTRIBUTORS, KEPT, NONE, GnqRun
from orchestrator.gnq.page.sweeps import bins_by_setting, cuts, level_rows, level_titles
from orchestrator.gnq.result.words import words
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.numbers import percent
from orchestrator.report.style import DASHES, INK, MARKERS, PAPER, SERIES
from orchestrator.report.words import ranking_words


def bin_settings(run: GnqRun) -> Figure | None:
    """Draw AUC with intervals by bin of GNQ, a line a setting; None where settings do not differ in it."""
    found = bins_by_setting(run)
    if not found:
        return None
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for index, (name, rows) in enumerate(found.items()):
        _line(axes, [(place, row.auc) for place, row in rows.items()], index, name, 0.3 / len(found))
    axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.xaxis.set_major_locator(FixedLocator(sorted({place for rows in found.values() for place in rows})))
    axes.set_xlabel("bin of GNQ: 1 least exposed, the last one most", fontsize=9)
    axes.set_ylabel(f"AUC of {words('lira')} [{percent(run.level, 0)} over pools]")
    within(axes, "y", 0.0, 1.0)
    figure.legend(loc="outside right upper")
    return figure


def levels(run: GnqRun) -> Figure | None:
    """Draw GNQ, attack and test accuracy without a defence, a row a setting; None where settings do not differ."""
    found = level_rows(run)
    if not found:
        return None
    names = list(found)
    titles = level_titles(run)
    shown = [place for place in range(len(titles)) if any(parts[place].known for parts in found.values())]
    figure = Figure(figsize=(2.1 * len(shown) + 1.4, 0.3 * len(names) + 1.1), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, place in zip(panels, shown, strict=True):
        for height, parts in enumerate(found.values()):
            part = parts[place]
            if not part.known:
                continue
            if part.bounded:
                axes.plot(part.ends, [height] * 2, color=SERIES[0], linewidth=1.4)
            own = names[height] == run.main_setting
            axes.plot(float(part), height, "D" if own else "o", color=SERIES[0], markersize=6 if own else 5)
        axes.set_title(titles[place], fontsize=8.5)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel(f"[{percent(run.level, 0)} over pools]; diamond: {run.main_setting}", fontsize=9)
    return figure


def cut_curves(run: GnqRun) -> Figure | None:
    """Draw AUC by the judge against the share removed, a line a ranking: everybody, and kept points; None without."""
    found = cuts(run)
    if not found:
        return None
    rankings = list(dict.fromkeys(cut.ranking for cut in found))
    panels: Sequence[tuple[str, str]] = ((CONTRIBUTORS, "all contributors"), (KEPT, "kept points, same rule"))
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    for axes, (group, title) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
        for index, ranking in enumerate(rankings):
            own = [cut for cut in found if cut.ranking == ranking]
            cells = [(cut.share, run.cell(cut.setting, cut.arm.arm, group, run.judge, BEST_SHADOWS)) for cut in own]
            base = run.cell(own[0].setting, NONE, CONTRIBUTORS, run.judge, BEST_SHADOWS)
            spots = [(share, cell.auc) for share, cell in ((0.0, base), *cells) if cell is not None]
            _line(axes, spots, index, ranking_words(ranking), 0.003)
        axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_title(title, fontsize=9)
        within(axes, "y", 0.0, 1.0)
    figure.axes[0].set_ylabel(f"AUC of {words(run.judge)} [{percent(run.level, 0)} over pools]")
    figure.supxlabel("share removed; 0: no defence, everybody", fontsize=9)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure


def _line(axes: Any, spots: Sequence[tuple[float, Estimate]], index: int, label: str, apart: float) -> None:
    """Draw estimates at x joined by a line, with bars; ``apart``: what keeps bars of lines apart."""
    known = [spot for spot in spots if spot[1].known]
    if not known:
        return
    again, style = divmod(index, len(SERIES))  # hollow where the styles come round again
    look: Mapping[str, Any] = {"color": SERIES[style], "linestyle": DASHES[style], "marker": MARKERS[style]}
    face = PAPER if again else SERIES[style]
    at = np.array([spot[0] for spot in known], float) + apart * index
    height = [float(found) for _, found in known]
    axes.plot(at, height, markersize=4.5, linewidth=1.4, label=label, markerfacecolor=face, **look)
    for place, (_, found) in zip(at, known, strict=True):
        if found.bounded:
            axes.vlines(place, *found.ends, color=look["color"], linewidth=0.8, alpha=0.8)

"""Defences as a trade: what each setting gives away, what it costs, and the settings that no other beats."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.plan import CONTROLS
from orchestrator.apollo.result.rows import Front, FrontRow
from orchestrator.apollo.result.words import heading, words
from orchestrator.judgement.wording import DASH
from orchestrator.report.chance import starred
from orchestrator.report.grid import Entry, Grid, bold, grid, left
from orchestrator.report.numbers import entry, percent
from orchestrator.report.style import INK, MARKERS, MUTED, SERIES

CHANCE = 0.5


def front_rows(front: Front) -> list[FrontRow]:
    """Return the settings that no other beats, the most accurate first."""
    return ranked([row for row in front.settings if row.on_front])


def ranked(rows: list[FrontRow]) -> list[FrontRow]:
    """Return settings, the most accurate first."""
    return sorted(rows, key=lambda row: -float(row.accuracy))


def trade_figure(run: ApolloRun) -> Figure | None:
    """Draw the AUC of every setting against its accuracy, with intervals, and the front as steps; None without one.

    Settings on the front have numbers; the setting that is the plan itself is ringed. Steps run along the crosses of
    intervals, so that they are drawn broad.
    """
    front = run.result.front
    if front is None:
        return None
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.subplots()
    kept = front_rows(front)
    for row in (*(each for each in front.settings if not each.on_front), *kept):
        place = kept.index(row) if row in kept else None
        look: dict[str, Any] = {"color": MUTED, "fmt": "o", "markersize": 4, "alpha": 0.55, "elinewidth": 0.6}
        if place is not None:
            style = place % len(SERIES)
            look = {"color": SERIES[style], "fmt": MARKERS[style], "markersize": 7, "elinewidth": 1.1, "zorder": 3}
            look["label"] = f"{place + 1}  {row.setting}"
        xerr, yerr = (np.array([found.errors]).T for found in (row.accuracy, row.auc))
        axes.errorbar(float(row.accuracy), float(row.auc), xerr=xerr, yerr=yerr, **look)
        if place is not None:
            axes.annotate(
                str(place + 1),
                (float(row.accuracy), float(row.auc)),
                xytext=(6, 6),
                textcoords="offset points",
                color=INK,
                zorder=4,
            )
        if row.setting == run.result.own_setting:
            axes.plot(float(row.accuracy), float(row.auc), "o", markersize=13, fillstyle="none", color=INK)
    along = kept[::-1]
    heights = [max(CHANCE, float(row.auc)) for row in along]
    axes.step([float(row.accuracy) for row in along], heights, where="pre", color=INK, linewidth=4, alpha=0.3, zorder=2)
    axes.axhline(CHANCE, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value, 0)))
    axes.set(xlabel="test accuracy after unlearning (mean over targets)")
    axes.set(ylabel=f"AUC of {words(front.attack)} against {heading(front.unlearner)}")
    figure.legend(loc="outside lower center", title="on the front", alignment="left", title_fontsize=8.5)
    return figure


def trade_grid(run: ApolloRun) -> Grid | None:
    """Return all settings with both numbers and the controls beside them, the most accurate first; None without."""
    front = run.result.front
    if front is None:
        return None
    level = percent(run.result.level, 0)
    rows = {(row.setting, row.unlearner): row for row in run.result.table if row.attack == front.attack}
    found = {name: row.control_of for (_, name), row in rows.items() if row.control_of}
    controls = sorted(found, key=lambda name: CONTROLS.index(found[name]))
    body = []
    for own in ranked(list(front.settings)):
        beside = [rows.get((own.setting, name)) for name in controls]
        body.append(
            [
                Entry(own.setting, tone=bold(own.on_front)),
                entry(own.accuracy),
                entry(own.auc),
                Entry(percent(own.share, 0), tone=bold(own.on_front)),
                *(starred(row) if row else Entry(DASH) for row in beside),
            ]
        )
    columns = [left("setting"), f"test accuracy\n[{level}]", f"AUC [{level}],\n{heading(front.unlearner)}"]
    title = f"{words(front.attack)} against accuracy, the front in bold"
    return grid("trade", title, [*columns, "on the front", *(f"AUC,\n{run.called(name)}" for name in controls)], body)

"""What the settings of a sweep say side by side: attack by bin, level of uniqueness, and what larger shares gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, PercentFormatter

from orchestrator.report.by_setting import Grid
from orchestrator.report.disclosure.figures import within
from orchestrator.report.disclosure.glossary import RULES, ranking_words, words
from orchestrator.report.disclosure.numbers import DASH, ENDS, change, estimate, headline, holm_mark
from orchestrator.report.disclosure.reading import BEST_SHADOWS, CONTRIBUTORS, KEPT, NONE, DisclosureRun
from orchestrator.report.disclosure.tables import REFERENCES
from orchestrator.report.reading import Row, percent
from orchestrator.report.style import DASHES, INK, MARKERS, PAPER, SERIES

RULE = "same"
"""Non-members by which bins are compared across settings: those of the twin's same bin."""
LEVEL = "Σ ½·log₂(1 + GNQ), median"
LONG = 10.0
"""Numbers from here on have one decimal: sums over steps, no rates."""
Spread = tuple[float, float | None, float | None]
"""A number and its interval."""
LEAST_SHARES = 3
"""Shares, no removal among them, from which on a curve is drawn."""


class Cut(NamedTuple):
    """A removal: the ranking, the share, its arm and the setting that it stands in."""

    ranking: str
    share: float
    arm: Row
    setting: str


def bin_setting_grid(run: DisclosureRun) -> Grid | None:
    """Return setting × bin of GNQ: AUC of LiRA; None where settings do not differ in it."""
    found = bins_by_setting(run)
    if not found:
        return None
    places = sorted({place for rows in found.values() for place in rows})
    body = [[name, *(estimate(rows.get(place), "auc", ends=ENDS) for place in places)] for name, rows in found.items()]
    title = f"AUC of {words('lira')} by bin of GNQ, against {RULES[RULE]}, by setting; bin 1 least exposed"
    return Grid(title, ["setting", *map(str, places)], body)


def bins_by_setting(run: DisclosureRun) -> dict[str, dict[int, Row]]:
    """Return setting → bin of GNQ → its row; {} where fewer than two settings have their own."""
    found = {}
    for setting in run.settings:
        rows = [row for row in run.rows("bins", setting) if (row["score"], row["rule"]) == (run.speaker, RULE)]
        if rows:
            found[setting] = {int(row["bin"]): row for row in rows}
    seen = {tuple(row["auc"] for row in rows.values()) for rows in found.values()}
    return found if len(seen) > 1 else {}


def bin_settings(run: DisclosureRun) -> Figure | None:
    """Draw AUC with intervals by bin of GNQ, a line a setting; None where settings do not differ in it."""
    found = bins_by_setting(run)
    if not found:
        return None
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for index, (name, rows) in enumerate(found.items()):
        _line(
            axes,
            [(place, row["auc"], row["low"], row["high"]) for place, row in rows.items()],
            index,
            name,
            0.3 / len(found),
        )
    axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.xaxis.set_major_locator(FixedLocator(sorted({place for rows in found.values() for place in rows})))
    axes.set_xlabel("bin of GNQ: 1 least exposed, the last one most", fontsize=9)
    axes.set_ylabel(f"AUC of {words('lira')} [{percent(run.level, 0)} over pools]")
    within(axes, "y", 0.0, 1.0)
    figure.legend(loc="outside right upper")
    return figure


def level_rows(run: DisclosureRun) -> dict[str, list[Spread | None]]:
    """Return setting → GNQ (median), the same a step, AUC by the judge and test accuracy, each with its interval.

    All without a defence; {} where fewer than two settings differ in them. Sums grow with the steps they go over.
    """
    found = {}
    for setting in run.settings:
        base = run.undefended(setting)
        cell = run.cell(setting, NONE, CONTRIBUTORS, run.judge, BEST_SHADOWS) if base else None
        level = next((row for row in run.rows("levels", setting) if row["score"] == run.speaker), None)
        whole = _ends(level, "median", *ENDS)
        found[setting] = [
            whole,
            _a_step(whole, base["steps"] if base else None),
            _ends(cell, "auc", "auc_low", "auc_high"),
            _ends(base, "test_accuracy", "test_accuracy_low", "test_accuracy_high"),
        ]
    return found if len({str(row) for row in found.values()}) > 1 else {}


def _a_step(whole: Spread | None, steps: int | None) -> Spread | None:
    if whole is None or not steps:
        return None
    value, low, high = whole
    return value / steps, None if low is None else low / steps, None if high is None else high / steps


def _ends(row: Row | None, name: str, low: str, high: str) -> Spread | None:
    return None if row is None or row[name] is None else (float(row[name]), row[low], row[high])


def level_grid(run: DisclosureRun) -> Grid | None:
    """Return setting × GNQ, AUC and test accuracy without a defence; None where settings do not differ in them."""
    body = [
        [name, *(DASH if part is None else _estimate(part) for part in parts)]
        for name, parts in level_rows(run).items()
    ]
    level = percent(run.level, 0)
    head = ["setting", *(f"{title} [{level}]" for title in level_titles(run))]
    return Grid("Uniqueness, attack and accuracy without a defence, by setting", head, body) if body else None


def level_titles(run: DisclosureRun) -> tuple[str, ...]:
    """Return what the numbers of ``level_rows`` are."""
    return (LEVEL, "the same a step", f"AUC of {words(run.judge)}", "test accuracy")


def _estimate(part: Spread) -> str:
    if part[0] < LONG:
        return estimate(dict(zip(("value", "low", "high"), part, strict=True)), "value", ends=ENDS)
    value, low, high = part
    return f"{value:.1f}" if low is None or high is None else f"{value:.1f} [{low:.1f}, {high:.1f}]"


def levels(run: DisclosureRun) -> Figure | None:
    """Draw GNQ, attack and test accuracy without a defence, a row a setting; None where settings do not differ."""
    found = level_rows(run)
    if not found:
        return None
    names = list(found)
    titles = level_titles(run)
    shown = [place for place in range(len(titles)) if any(parts[place] for parts in found.values())]
    figure = Figure(figsize=(2.1 * len(shown) + 1.4, 0.3 * len(names) + 1.1), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, place in zip(panels, shown, strict=True):
        for height, parts in enumerate(found.values()):
            if (part := parts[place]) is None:
                continue
            value, low, high = part
            if low is not None:
                axes.plot([low, high], [height] * 2, color=SERIES[0], linewidth=1.4)
            own = names[height] == run.main_setting
            axes.plot(value, height, "D" if own else "o", color=SERIES[0], markersize=6 if own else 5)
        axes.set_title(titles[place], fontsize=8.5)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel(f"[{percent(run.level, 0)} over pools]; diamond: {run.main_setting}", fontsize=9)
    return figure


def cuts(run: DisclosureRun) -> list[Cut]:
    """Return the removals of all settings in order of ranking and share; [] where none has shares enough for a curve.

    Nothing but the defences may differ between the settings: all stand beside the same undefended models.
    """
    if any(set(entry["overrides"]) - {"defences"} for entry in run.result["settings"]):
        return []
    found: dict[tuple[str, float], Cut] = {}
    for setting in run.settings:
        for arm in run.arms(setting):
            if arm["method"] == "remove":
                found.setdefault((arm["ranking"], arm["share"]), Cut(arm["ranking"], arm["share"], arm, setting))
    shares = {name: sum(cut.ranking == name for cut in found.values()) + 1 for name, _ in found}
    order = list(dict.fromkeys(name for name, _ in found))
    kept = [cut for cut in found.values() if shares[cut.ranking] >= LEAST_SHARES]
    return sorted(kept, key=lambda cut: (order.index(cut.ranking), cut.share))


def cut_grid(run: DisclosureRun) -> Grid | None:
    """Return ranking × share: headline, differences, kept points and test accuracy; None without a curve."""
    body = []
    for cut in cuts(run):
        rows = run.against(cut.setting, cut.arm)
        kept = estimate(run.kept(cut.setting, cut.arm), "auc")
        told = [f"{change(row)}{holm_mark(row, run.level)}" for row in rows]
        accuracy = estimate(cut.arm, "test_accuracy")
        body.append([ranking_words(cut.ranking), _share(cut.share), headline(cut.arm), *told, kept, accuracy])
    level = percent(run.level, 0)
    head = ["removed", "share", f"headline AUC [{level}]", *(f"AUC minus {name}" for name in REFERENCES)]
    title = "Removal by share; differences as in the tables of each share, * after Holm’s correction within it"
    return Grid(title, [*head, "kept, same rule", f"test accuracy [{level}]"], body) if body else None


def _share(share: float) -> str:
    return f"{share * 100:.3g}\N{NO-BREAK SPACE}%"


def cut_curves(run: DisclosureRun) -> Figure | None:
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
            cells = [(cut.share, run.cell(cut.setting, cut.arm["arm"], group, run.judge, BEST_SHADOWS)) for cut in own]
            base = run.cell(own[0].setting, NONE, CONTRIBUTORS, run.judge, BEST_SHADOWS)
            spots = [
                (share, cell["auc"], cell["auc_low"], cell["auc_high"])
                for share, cell in ((0.0, base), *cells)
                if cell is not None and cell["auc"] is not None
            ]
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


def _line(axes: Any, spots: Sequence[tuple[float, Any, Any, Any]], index: int, label: str, apart: float) -> None:
    """Draw points (x, value, low, high) joined by a line, with bars; ``apart``: what keeps bars of lines apart."""
    known = [spot for spot in spots if spot[1] is not None]
    if not known:
        return
    again, style = divmod(index, len(SERIES))  # hollow where the styles come round again
    look: Mapping[str, Any] = {"color": SERIES[style], "linestyle": DASHES[style], "marker": MARKERS[style]}
    face = PAPER if again else SERIES[style]
    at = np.array([spot[0] for spot in known], float) + apart * index
    axes.plot(at, [spot[1] for spot in known], markersize=4.5, linewidth=1.4, label=label, markerfacecolor=face, **look)
    for place, (_, _, low, high) in zip(at, known, strict=True):
        if low is not None:
            axes.vlines(place, low, high, color=look["color"], linewidth=0.8, alpha=0.8)

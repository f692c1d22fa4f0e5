"""The one picture of a first screen: each finding with its interval, guessing, and what a null would have shown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.judgement.rows import DIFFERENT, LEAK, NONE_SEEN, UNTOLD, Finding, Verdict
from orchestrator.judgement.wording import METRICS, capital
from orchestrator.report.style import INK, MUTED, PAPER, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 56
TALLEST, FRAME = 6.9, 1.15
"""Inches of a figure that a first screen of 1280 × 800 pixels holds, and what axis and legend take of them."""
PITCH = {1: (0.4, 0.52), 2: (0.52, 0.66)}
"""Lines of the longest name → the least and the usual inches of a row."""
LOOKS: dict[str, dict[str, Any]] = {
    LEAK: {"color": SERIES[1], "marker": "o", "markerfacecolor": SERIES[1]},
    NONE_SEEN: {"color": SERIES[0], "marker": "o", "markerfacecolor": PAPER},
    DIFFERENT: {"color": SERIES[1], "marker": "o", "markerfacecolor": SERIES[1]},
    UNTOLD: {"color": MUTED, "marker": "X", "markerfacecolor": MUTED},
}


def verdict_figure(verdict: Verdict) -> Figure | None:
    """Draw the findings of a verdict that have a number; None where none has one."""
    from matplotlib.figure import Figure

    rows = [each.but(level=UNTOLD) if verdict.too_small else each for each in shown(verdict.findings)]
    if not rows:
        return None
    names = names_of(rows)
    figure = Figure(figsize=(4.9, min(row_inches(names)[1] * len(rows) + FRAME, TALLEST)), layout="constrained")
    axes = figure.subplots()
    for height, (finding, name) in enumerate(zip(rows, names, strict=True)):
        draw_finding(axes, finding, height, name)
    chance = rows[0].chance
    if chance is not None:
        axes.axvline(chance, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
    low, high = axes.get_xlim()
    base = chance or 0.0
    axes.set_xlim(max(min(low, base - 0.03), -1.02), min(max(high, base + 0.12), 1.02))
    axes.set_ylim(len(rows) - 0.6, -0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"{METRICS[rows[0].metric]} (dashed: {'guessing' if verdict.controls else 'no difference'})")
    legend(figure, rows)
    return figure


def shown(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with a number of the first one's metric, as many as a first screen holds."""
    rows = comparable(findings)
    return rows[: int((TALLEST - FRAME) / row_inches(names_of(rows))[0])]


def comparable(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with a number of the first one's metric."""
    known = [each for each in findings if each.value.known or each.seen_from is not None]
    return [each for each in known if each.metric == known[0].metric]


def row_inches(names: Sequence[str]) -> tuple[float, float]:
    """Return the least and the usual inches of a row with such names."""
    return PITCH[2 if any("\n" in name for name in names) else 1]


def left_out(verdict: Verdict) -> str:
    """Return how many of the findings are drawn, where not all are."""
    drawn, known = len(shown(verdict.findings)), len(comparable(verdict.findings))
    return f" The first {drawn} of {known} are drawn." if drawn < known else ""


def names_of(rows: Sequence[Finding]) -> list[str]:
    """Return how each finding is called, in lines of at most ``WIDTH``; with its setting where that tells two apart."""
    several = len({each.setting for each in rows}) > 1 and len({each.subject for each in rows}) < len(rows)
    names = [f"{each.setting}: {each.subject}" if several else capital(each.subject) for each in rows]
    return ["\n".join(textwrap.wrap(name, WIDTH)) for name in names]


def draw_finding(axes: Axes, finding: Finding, height: float, name: str) -> None:
    """Draw one finding: its name, its interval, and where a leak would have begun to show."""
    look, label = LOOKS[finding.level], name.replace("\n", " ")
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "left", "va": "bottom"}
    axes.text(0.0, height - 0.24, name, color=INK, backgroundcolor=PAPER, **place)
    if finding.value.known:
        axes.plot(finding.value.ends, [height] * 2, color=look["color"], linewidth=2.2, solid_capstyle="butt")
        axes.plot(float(finding.value), height, **look, markersize=7, markeredgewidth=1.4, label=label)
    if finding.level == NONE_SEEN and finding.seen_from is not None:
        seen: dict[str, Any] = {"marker": ">", "color": look["color"], "markersize": 7}
        axes.plot(finding.seen_from, height, label=f"{label}: seen from", **seen)


def legend(figure: Figure, rows: Sequence[Finding]) -> None:
    """Explain the marks that are drawn."""
    from matplotlib.lines import Line2D

    levels = [level for level in LOOKS if any(each.level == level for each in rows)]
    marks = [Line2D([], [], linestyle="", markersize=7, label=level, **LOOKS[level]) for level in levels]
    if any(each.level == NONE_SEEN and each.seen_from is not None for each in rows):
        look: dict[str, Any] = {"color": SERIES[0], "marker": ">", "linestyle": "", "markersize": 7}
        marks.append(Line2D([], [], label="would have been seen from here on", **look))
    figure.legend(handles=marks, loc="outside lower left", ncols=2, handletextpad=0.3, columnspacing=1.2)


def caption(verdict: Verdict) -> str:
    """Return what the picture shows, for those who do not see it as well."""
    said = "; ".join(f"{each.subject}: {each.text}" for each in shown(verdict.findings))
    return f"{said}."

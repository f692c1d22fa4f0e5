"""The frontier: AUC of the strongest attack on each arm against the test accuracy that the arm keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from orchestrator.gnq.page.figures import within
from orchestrator.gnq.page.reading import GnqRun
from orchestrator.gnq.plan import READS_MODE
from orchestrator.gnq.result.rows import ArmRow
from orchestrator.gnq.result.words import arm_words
from orchestrator.report.numbers import percent
from orchestrator.report.style import INK, MARKERS, MUTED, PAPER, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

METHODS = ("none", "remove", "noise", "dp_sgd")
DISTANCES = (0.08, 0.2, 0.34, 0.5, 0.7, 0.95, 1.25, 1.6)
"""How far from its mark a label may stand, in inches; the nearest free place is taken."""
SIDES = ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, 1), (-1, -1), (0, 1), (0, -1))


def frontier(run: GnqRun, setting: str) -> Figure | None:
    """Draw headline AUC against test accuracy, both with intervals, a labelled mark an arm; None without a headline."""
    arms = [arm for arm in run.arms(setting) if arm.headline and arm.test_accuracy.known]
    if not arms:
        return None
    figure = Figure(figsize=(7.6, 4.4))
    figure.subplots_adjust(left=0.09, right=0.98, bottom=0.13, top=0.97)
    axes = figure.subplots()
    for arm in arms:
        _mark(axes, arm)
    axes.axhline(0.5, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.margins(0.16, 0.12)
    within(axes, "y", 0.0, 1.0)
    within(axes, "x", 0.0, 1.0)
    low, high = axes.get_xlim()
    digits = 0 if high - low > 0.05 else 1
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value, digits)))
    bounds = f"[{percent(run.level, 0)} over pools]"
    axes.set(xlabel=f"test accuracy {bounds}", ylabel=f"AUC of the strongest attack {bounds}")
    _label(figure, axes, arms)
    return figure


def _mark(axes: Axes, arm: ArmRow) -> None:
    """Draw one arm: colour and marker by method, hollow for removal by a control ranking."""
    at = METHODS.index(arm.method) if arm.method in METHODS else len(METHODS)
    x, y = spot(arm)
    if arm.test_accuracy.bounded:
        axes.plot(arm.test_accuracy.ends, [y, y], color=SERIES[at], linewidth=1.1)
    if arm.headline and arm.headline.auc.bounded:
        axes.plot([x, x], arm.headline.auc.ends, color=SERIES[at], linewidth=1.1)
    face = PAPER if is_control(arm) else SERIES[at]
    axes.plot(x, y, MARKERS[at], color=SERIES[at], markersize=7, markerfacecolor=face, markeredgewidth=1.3)


def spot(arm: ArmRow) -> tuple[float, float]:
    """Return where an arm's mark stands: test accuracy and headline AUC."""
    return float(arm.test_accuracy), float(arm.headline.auc) if arm.headline else math.nan


def is_control(arm: ArmRow) -> bool:
    """Say whether an arm removes points, or puts noise on them, by a ranking that is not made of GNQ."""
    return arm.ranking is not None and arm.ranking not in READS_MODE


def _label(figure: Figure, axes: Axes, arms: Sequence[ArmRow]) -> None:
    """Put each arm's name at the nearest place where it hides no mark, no interval and no other name.

    Where there is no such place: where it hides least, names and marks counting more than intervals.
    """
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    lines = [_box(axes, line.get_xdata(), line.get_ydata()) for line in axes.get_lines()]
    dear = [_box(axes, [x], [y]) for x, y in map(spot, arms)]
    for arm, mark in zip(arms, list(dear), strict=True):
        hidden: dict[tuple[float, float, int, int], int] = {}
        for place in _places():
            box = _name_box(axes, arm, place)
            if frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1:
                hidden[place] = 100 * sum(map(box.overlaps, dear)) + sum(map(box.overlaps, lines))
                if not hidden[place]:
                    break
        best = min(hidden, key=lambda place: hidden[place], default=next(_places()))
        dear.append(_name_box(axes, arm, best))
        lines += _leader(mark, best, figure.dpi)
        _annotate(axes, arm, best, joined=True)


def _places() -> Iterator[tuple[float, float, int, int]]:
    """Return offsets from a mark in points, near ones first, and the side on which each lies."""
    for distance in DISTANCES:
        for right, up in SIDES:
            yield 72 * distance * right, 72 * distance * up, right, up


def _annotate(axes: Axes, arm: ArmRow, place: tuple[float, float, int, int], *, joined: bool) -> Annotation:
    """Write an arm's name at an offset from its mark; ``joined`` to it by a thin line where it stands apart."""
    x, y, right, up = place
    look: dict[str, Any] = {
        "ha": {1: "left", 0: "center", -1: "right"}[right],
        "va": {1: "bottom", 0: "center", -1: "top"}[up],
        "fontsize": 8.5,
    }
    apart = joined and max(abs(x), abs(y)) > 72 * DISTANCES[1]
    arrow: dict[str, Any] | None = None
    if apart:
        corner = ((1 - right) / 2, (1 - up) / 2)  # of the name, next to the mark
        arrow = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4, "relpos": corner}
    return axes.annotate(arm_words(arm), spot(arm), (x, y), textcoords="offset points", arrowprops=arrow, **look)


def _name_box(axes: Axes, arm: ArmRow, place: tuple[float, float, int, int]) -> Bbox:
    """Return what an arm's name would cover at an offset, in pixels."""
    text = _annotate(axes, arm, place, joined=False)
    box = text.get_window_extent().padded(1.5)
    text.remove()
    return box


def _leader(mark: Bbox, place: tuple[float, float, int, int], dpi: float) -> list[Bbox]:
    """Return boxes along the line from a mark to its name, in pixels."""
    x, y = (offset * dpi / 72 for offset in place[:2])
    return [mark.translated(part * x, part * y) for part in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)]


def _box(axes: Axes, x: Any, y: Any) -> Bbox:
    """Return what a line or a mark covers, in pixels."""
    from matplotlib.transforms import Bbox

    corners = axes.transData.transform([(float(min(x)), float(min(y))), (float(max(x)), float(max(y)))])
    return Bbox([corners[0] - 4.0, corners[1] + 4.0])

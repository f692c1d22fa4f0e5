"""Heat tables with a number in every cell: transfer between architectures, confusion of three groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from audits.statistics.discoveries import judge_among
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import ThreeWayRow
from orchestrator.apollo.result.words import heading, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRANSFER = re.compile(r"(?P<target>\S+?)\s*(<-|←)\s*(?P<shadow>\S+)")
MOST_COLUMNS = 4
COLOURS = "cividis"


def transfers(run: ApolloRun) -> dict[tuple[str, str], str]:
    """Return (target architecture, shadow architecture) → setting, of settings named ``resnet18<-vgg16``."""
    found = {}
    for entry in run.result.settings:
        if named := TRANSFER.fullmatch(str(entry.setting)):
            found[named["target"], named["shadow"]] = str(entry.setting)
    return found


def transfer_matrix(run: ApolloRun) -> Figure | None:
    """Draw AUC with its interval for target (rows) × shadow architecture (columns), a panel per unlearner.

    The attack is that of the exposure list (Apollo's Table V); None for runs without such settings.
    """
    settings = transfers(run)
    if not settings:
        return None
    attack = judge_among(run.attacks)
    targets = list(dict.fromkeys(target for target, _ in settings))
    shadows = list(dict.fromkeys(shadow for _, shadow in settings))
    panels = []
    for unlearner in run.unlearners:
        value = np.full((len(targets), len(shadows)), np.nan)
        text = [["–"] * len(shadows) for _ in targets]
        for (target, shadow), setting in settings.items():
            for row in run.rows(setting):
                if (row.unlearner, row.attack) == (unlearner, attack):
                    place = targets.index(target), shadows.index(shadow)
                    value[place] = float(row.auc)
                    text[place[0]][place[1]] = "{:.3f}\n[{:.2f}, {:.2f}]".format(float(row.auc), *row.auc.ends)
        panels.append((heading(unlearner), value, text))
    return _heat_tables(panels, targets, shadows, f"AUC of {words(attack)}", "target", "shadows")


def confusions(rows: Sequence[ThreeWayRow]) -> Figure | None:
    """Draw the 3 × 3 confusion of each row of ``three_way``: truth in rows, decision in columns; None without rows."""
    if not rows:
        return None
    panels = []
    for row in rows:
        text = [
            [
                f"{row.confusion[i][j]:.2f}\n[{row.confusion_low[i][j]:.2f}, {row.confusion_high[i][j]:.2f}]"
                for j in range(3)
            ]
            for i in range(3)
        ]
        panels.append((f"{heading(row.unlearner)}: {words(row.attack)}", np.array(row.confusion), text))
    groups = list(rows[0].groups)
    return _heat_tables(panels, groups, groups, "share of the true group", "truth", "called")


def _heat_tables(
    panels: Sequence[tuple[str, NDArray[np.float64], list[list[str]]]],
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
    vertical: str,
    horizontal: str,
) -> Figure:
    """Draw one table per (title, values, texts), all on one colour scale."""
    across = min(MOST_COLUMNS, len(panels))
    down = -(-len(panels) // across)
    size = (max(2.6, 0.92 * len(columns) + 0.5) * across + 1.0, (0.5 * len(rows) + 1.0) * down + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    low = min(float(np.nanmin(values)) for _, values, _ in panels if np.isfinite(values).any())
    high = max(float(np.nanmax(values)) for _, values, _ in panels if np.isfinite(values).any())
    image = None
    for axes, (title, values, texts) in zip(grid.ravel(), panels, strict=False):
        image = axes.imshow(values, cmap=COLOURS, vmin=low, vmax=max(high, low + 1e-9), aspect="auto")
        axes.set_title(title)
        axes.grid(visible=False)
        axes.set_xticks(range(len(columns)), list(columns))
        axes.set_yticks(range(len(rows)), list(rows))
        axes.tick_params(labelbottom=True, length=0)
        _write(axes, values, texts, (low + high) / 2)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_visible(False)
    if image is not None:
        figure.colorbar(image, ax=list(grid.ravel()), label=label, shrink=0.8, pad=0.01)
    figure.supxlabel(horizontal, fontsize=9)
    figure.supylabel(vertical, fontsize=9)
    return figure


def _write(axes: Axes, values: NDArray[np.float64], texts: list[list[str]], middle: float) -> None:
    """Write the text of every cell in a colour that stands out from its own."""
    for (line, column), value in np.ndenumerate(values):
        ink = "white" if value < middle else "black"
        axes.text(column, line, texts[line][column], ha="center", va="center", fontsize=7, color=ink)

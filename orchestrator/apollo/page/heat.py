"""Heat maps over radii (Fig. 5 of arXiv 2506.09923): who is called unlearned, and how much more often rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from orchestrator.apollo.result.rows import HeatMap
from orchestrator.apollo.result.words import heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 5
GAIN = "TPR − FPR"
ROWS = ("tpr", "fpr", GAIN)


def heat_maps(maps: Mapping[str, HeatMap], unlearners: Sequence[str]) -> Figure | None:
    """Draw TPR, FPR and their difference over (UNDER radius, OVER radius), one column per unlearner.

    Rates share one scale over all panels, differences another, zero in its middle.
    """
    names = [name for name in unlearners if name in maps]
    if not names:
        return None
    grids = {name: with_gain(maps[name]) for name in names}
    rates = [grids[name][key] for name in names for key in ("tpr", "fpr")]
    most = max(0.01, *(float(np.abs(grids[name][GAIN]).max()) for name in names))
    scale = {"cmap": "cividis", "vmin": float(np.min(rates)), "vmax": float(np.max(rates))}
    scales = {"tpr": scale, "fpr": scale, GAIN: {"cmap": "PuOr_r", "vmin": -most, "vmax": most}}
    columns = min(MOST_PANELS, len(names))
    blocks = -(-len(names) // columns)
    figure = Figure(figsize=(2.05 * columns + 1.1, 6.5 * blocks + 0.1), layout="constrained")
    panels = figure.subplots(len(ROWS) * blocks, columns, sharex=True, sharey=True, squeeze=False)
    for axes in panels.ravel():
        axes.set_visible(False)
    for place, name in enumerate(names):
        block, column = divmod(place, columns)
        for offset, key in enumerate(ROWS):
            row = panels[len(ROWS) * block + offset]
            axes = row[column]
            axes.set_visible(True)
            image = axes.imshow(grids[name][key], origin="lower", aspect="equal", **scales[key])
            _radius_ticks(axes, maps[name].under_radius, maps[name].over_radius)
            axes.tick_params(labelbottom=offset == len(ROWS) - 1)
            if offset == 0:
                axes.set_title(heading(name))
            if column == 0:
                figure.colorbar(image, ax=list(row), label=key if key == GAIN else key.upper(), shrink=0.9, pad=0.01)
    figure.supxlabel("OVER radius", fontsize=9)
    figure.supylabel("UNDER radius", fontsize=9)
    return figure


def with_gain(rates: HeatMap) -> dict[str, Any]:
    """Return ``tpr`` and ``fpr`` (T, T) as arrays, and their difference."""
    right, wrong = np.asarray(rates.tpr, dtype=float), np.asarray(rates.fpr, dtype=float)
    return {"tpr": right, "fpr": wrong, GAIN: right - wrong}


def _radius_ticks(axes: Axes, under: Sequence[float], over: Sequence[float]) -> None:
    """Label the pixels of a heat map with the radii they stand for."""
    axes.grid(visible=False)
    shown = range(0, len(over), max(1, len(over) // 4)), range(0, len(under), max(1, len(under) // 4))
    axes.set_xticks(shown[0], [f"{over[i]:.2g}" for i in shown[0]])
    axes.set_yticks(shown[1], [f"{under[i]:.2g}" for i in shown[1]])

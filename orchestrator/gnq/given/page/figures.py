"""The figure of a given model: how gradient uniqueness is distributed over training points and controls."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from orchestrator.gnq.given.page.words import GROUPS
from orchestrator.report.style import DASHES, INK, SERIES

BINS = 40
LEAST = 1e-12


def distribution(uniqueness: dict[str, NDArray[np.float64]], leverage: float) -> Figure:
    """Draw a histogram of GNQ for each group on a logarithmic axis, and where points count as exposed."""
    values = {group: np.maximum(found, LEAST) for group, found in uniqueness.items()}
    ends = np.log10([min(map(np.min, values.values())), max(map(np.max, values.values()))])
    edges = np.logspace(ends[0] - 0.05, ends[1] + 0.05, BINS + 1)
    figure = Figure(figsize=(6.4, 2.9), layout="constrained")
    axes = figure.subplots()
    for index, (group, found) in enumerate(values.items()):
        name = f"{GROUPS[group]} ({len(found)})"
        weights = np.full(len(found), 1 / len(found))
        axes.hist(
            found,
            edges.tolist(),
            weights=weights,
            histtype="step",
            label=name,
            color=SERIES[index],
            linestyle=DASHES[index],
        )
    axes.axvline(leverage / (1 - leverage), color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.set_xscale("log")
    axes.set_xlabel("GNQ at the last checkpoint")
    axes.set_ylabel("share of points")
    axes.legend()
    return figure

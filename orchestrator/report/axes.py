"""Axes of figures over the values of a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def is_logarithmic(values: tuple[float, ...]) -> bool:
    """Say whether values want a logarithmic axis: all positive, spread by a factor of four or more."""
    return min(values) > 0 and max(values) / min(values) >= 4


def value_axis(axes: Axes, values: tuple[float, ...], *, logarithmic: bool) -> None:
    """Put one tick at every swept value."""
    if logarithmic:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
    axes.grid(axis="x", visible=False)

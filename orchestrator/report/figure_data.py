"""The numbers that a figure draws, as a table: what stands behind its link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.engine.media import csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = ("panel", "series", "mark", "x", "y", "value")
Row = tuple[object, ...]
NUMBER = re.compile(r"[-−+]?[\d.]*\s*%?")
"""The label of a tick that is a number, or none."""


def data_of(figure: Figure) -> str:
    """Return what ``figure`` draws from numbers as CSV: panel, series, kind of mark, place, and the value of cells.

    Where an axis is marked with words, a place on it is the word. Bars are told by their middle and their height.
    """
    return csv_text([HEAD, *(row for axes in figure.axes if axes.get_visible() for row in Panel(axes).rows())])


@dataclass(frozen=True)
class Panel:
    """One panel of a figure; ``axes`` is Matplotlib's, whose artists are not typed closely enough to say more."""

    axes: Any

    def rows(self) -> Iterator[Row]:
        """Yield a row for each point, end of an interval, corner of a band, bar and cell."""
        for line in self.axes.lines:
            yield from self.marks(line, "point", zip(line.get_xdata(False), line.get_ydata(False), strict=True))
        for group in self.axes.collections:
            yield from self.collection(group)
        for bar in self.axes.patches:
            if hasattr(bar, "get_width"):
                middle = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
                yield from self.marks(bar, "bar", [middle], bar.get_height())
        for image in self.axes.images:
            yield from self.cells(image)

    def collection(self, group: Any) -> Iterator[Row]:
        """Yield the marks of intervals, of a heat map, of scattered points, or of a band."""
        if hasattr(group, "get_segments"):
            for segment in group.get_segments():
                yield from self.marks(group, "interval", segment)
        elif getattr(group.get_array(), "ndim", 0) == 2:
            yield from self.cells(group)
        elif len(group.get_offsets()) > 1:
            yield from self.marks(group, "point", group.get_offsets())
        else:
            for path in group.get_paths():
                yield from self.marks(group, "band", path.vertices)

    def cells(self, image: Any) -> Iterator[Row]:
        """Yield the cells of a heat map."""
        for row, values in enumerate(image.get_array()):
            for column, value in enumerate(values):
                yield from self.marks(image, "cell", [(column, row)], value)

    def marks(self, artist: Any, mark: str, places: Iterable[Any], value: Any = "") -> Iterator[Row]:
        """Yield a row for each of the ``places`` of an artist."""
        label = str(artist.get_label())
        series = "" if label.startswith("_") else label
        told = value if isinstance(value, str) else f"{float(value):.6g}"
        across, up = words_of(self.axes.xaxis), words_of(self.axes.yaxis)
        for x, y in places:
            yield self.title, series, mark, place(x, across), place(y, up), told

    @property
    def title(self) -> str:
        """The title of the panel, else what its y axis says."""
        titles = (self.axes.get_title(loc) for loc in ("left", "center", "right"))
        return next(filter(None, titles), "") or str(self.axes.get_ylabel())


def words_of(axis: Any) -> dict[float, str]:
    """Return the words at the ticks of an axis; none of an axis of numbers."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter

    words = isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter)
    if not (words and isinstance(axis.get_major_locator(), FixedLocator)):
        return {}
    texts = [label.get_text().replace("\n", " ") for label in axis.get_ticklabels()]
    told = zip(axis.get_ticklocs(), texts, strict=False)
    return {float(at): text for at, text in told if not NUMBER.fullmatch(text)}


def place(at: Any, words: dict[float, str]) -> str:
    """Return a place on an axis: its word, else the number with six digits."""
    return words.get(float(at)) or f"{float(at):.6g}"

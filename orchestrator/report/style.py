"""The style of figures and their files: the same bytes for the same run, legible on paper, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.writing import make_folder, write_whole
from orchestrator.engine.media import file_name, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#1f2328", "#6a7079", "#d9dde3", "#fefefe"
# Okabe and Ito (2008): told apart with any colour vision; each series also has its own marker or line style.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#7a7a7a", INK, "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "p")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (9, 3)), (0, (2, 2)))
LABELS, POSTERIORS = SERIES[0], SERIES[1]
ACCESS = {"labels": LABELS, "posteriors": POSTERIORS, "logits": SERIES[2], "gradients": SERIES[4], "oracle": SERIES[3]}

_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    "#0072b2": "--blue",
    "#8a6d3b": "--brown",
}
_RC: dict[Any, Any] = {
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.5,
    "svg.fonttype": "path",
    "axes.axisbelow": True,
    "text.parse_math": False,  # names are no formulas
}


_PLACES = re.compile(r'(?<=\s)(d|x|y)="([^"]*)"')
"""The attributes of an SVG that hold places, or paths of them."""


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Draw under the report's style; ``name`` salts the ids of the SVG, so that several fit into one page.

    Of a file matplotlibrc nothing counts: one in the working folder, perhaps somebody else's, could have LaTeX run.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_RC, "svg.hashsalt": f"orch/{name}"})
        yield


def save(figure: Figure, name: str, folder: Path) -> str:
    """Write ``name``.svg and ``name``.png under ``folder`` and return the SVG for a page (colours as CSS variables)."""
    import matplotlib

    buffer, pixels = BytesIO(), BytesIO()
    with drawing(name):
        settle_labels(figure)
        with matplotlib.rc_context({"text.parse_math": True}):  # new ticks are those of numbers
            figure.draw_without_rendering()
            figure.set_layout_engine(None)  # laid out once: both files keep these places, and neither is drawn for them
            box = figure.get_tightbbox().padded(0.08)
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches=box)
            figure.savefig(pixels, format="png", dpi=150, metadata={"Software": None}, bbox_inches=box)
    make_folder(folder, below=folder.parent, private=True)
    for end, made in (("svg", buffer), ("png", pixels)):
        write_whole(folder / f"{file_name(name)}.{end}", made.getvalue(), below=folder.parent, private=True)
    return for_page(buffer.getvalue().decode("utf-8"))


def settle_labels(figure: Figure) -> None:
    """Let no name in a figure be a formula, steer what is around it, or make the figure endless.

    Ticks of numbers, which Matplotlib writes as formulas, stay what they are.
    """
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    for text in figure.findobj(Text):
        text.set_text(label(text.get_text()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            words = isinstance(formatter, FixedFormatter | FuncFormatter)
            if words:
                axis.set_major_formatter(FuncFormatter(lambda at, place, inner=formatter: label(inner(at, place))))
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                for text in (tick.label1, tick.label2):
                    text.set_parse_math(not words)


def for_page(svg: str) -> str:
    """Return the ``<svg>`` element alone, scalable, its greys replaced by the page's variables (dark mode, print).

    Places are cut to hundredths of a point, which nobody sees: a page of many curves is a third smaller.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>\s*", "", element, flags=re.DOTALL)
    element = re.sub(r' (width|height)="[\d.]+pt"', "", element, count=2)
    element = re.sub(r"\n +<", "\n<", _PLACES.sub(_cut, element))
    for colour, variable in _VARIABLES.items():
        element = element.replace(colour, f"var({variable})")
    return element


def _cut(places: re.Match[str]) -> str:
    """Return an attribute of places with two decimals each, on one line."""
    cut = re.sub(r"([.][0-9]{2})[0-9]+", r"\1", places[2])
    return f'{places[1]}="{" ".join(cut.split())}"'

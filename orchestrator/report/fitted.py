"""A table on a terminal of any width: what does not fit is shortened, then left out, and a line says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.report.grid import Column, Grid
from orchestrator.report.grid_formats import as_terminal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

INTERVAL = re.compile(r"\s*\[[^\]]*\]$")
"""The part of a heading that names the intervals in its column."""
LEFT_OUT = "Intervals and columns that do not fit are on the page."


@dataclass(frozen=True)
class Fitted:
    """A grid that is drawn (by rich) as wide as the terminal allows.

    Gaps are narrowed first, then intervals go: those of columns that narrow together, then from the right but for the
    first. Then columns go from the right. The first number goes never.
    """

    grid: Grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the first of the ever narrower tables that fits, the narrowest where none does."""
        table = as_terminal(self.grid)
        for table in candidates(self.grid):
            if width(table, console, options) <= options.max_width:
                break
        yield table


def width(table: Table, console: Console, options: ConsoleOptions) -> int:
    """Return the columns that a table takes where it has room."""
    return table.__rich_measure__(console, options.update(width=10_000)).maximum


def candidates(grid: Grid) -> Iterator[Table]:
    """Yield ever narrower tables of ``grid``; in the last one long words are broken."""
    yield as_terminal(grid)
    yield as_terminal(grid, gap=1)
    told = replace(grid, caption="\n".join(filter(None, (grid.caption, LEFT_OUT))))
    for columns in narrower(grid):
        told = replace(told, columns=columns)
        yield as_terminal(told, gap=1)
    yield as_terminal(told, gap=1, wrap=True)


def narrower(grid: Grid) -> Iterator[tuple[Column, ...]]:
    """Yield columns of ``grid`` without more and more of their intervals, then with fewer and fewer of themselves."""
    columns = [without_interval(each) if each.narrow == "together" else each for each in grid.columns]
    if columns != list(grid.columns):
        yield tuple(columns)
    for place in reversed(with_intervals(grid)[1:]):
        columns[place] = without_interval(columns[place])
        yield tuple(columns)
    shown = [place for place, column in enumerate(columns) if column.narrow != "nothing"]
    first = next((place for place in shown if columns[place].align == "right"), shown[0])
    for place in reversed([place for place in shown if place > first]):
        columns[place] = replace(columns[place], narrow="nothing")
        yield tuple(columns)
    columns[first] = without_interval(columns[first])
    yield tuple(columns)


def with_intervals(grid: Grid) -> list[int]:
    """Return the places of columns of which something stands beside the entries on a terminal."""
    return [
        place
        for place, column in enumerate(grid.columns)
        if column.narrow == "whole" and any(line[place].beside for line in grid.lines)
    ]


def without_interval(column: Column) -> Column:
    """Return a column that shows what stands beside its entries on no terminal, nor names it."""
    return replace(column, narrow="short", heading=INTERVAL.sub("", column.heading))

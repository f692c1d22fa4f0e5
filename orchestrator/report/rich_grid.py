"""A grid of words as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.report.by_setting import Grid

if TYPE_CHECKING:
    from rich.table import Table


def as_rich(grid: Grid, *, texts: int, caption: str = "") -> Table:
    """Return a grid as a table whose first ``texts`` columns are words; lines that share a first cell name it once."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=escape(grid.title),
        title_justify="left",
        caption=escape(caption) or None,
        caption_justify="left",
        caption_style="",
    )
    for place, name in enumerate(grid.head):
        table.add_column(escape(name), justify="left" if place < texts else "right", no_wrap=True)
    grouped = len({row[0] for row in grid.rows}) < len(grid.rows)
    before = ""
    for place, row in enumerate(grid.rows):
        last = grouped and (place + 1 == len(grid.rows) or grid.rows[place + 1][0] != row[0])
        table.add_row(*map(escape, ["" if row[0] == before else row[0], *row[1:]]), end_section=last)
        before = row[0]
    return table

"""A grid as HTML, Markdown, terminal text and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.engine.media import csv_text, html, markdown, terminal
from orchestrator.report.grid import Column, Entry, Grid, Line

if TYPE_CHECKING:
    from rich.table import Table


def as_html(grid: Grid) -> str:
    """Return a table element without the title; everything in it is escaped."""
    head = "".join(_heading(column) for column in grid.columns)
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{html(grid.title)}">'
    parts = [f"{region}<table>", f"<thead><tr>{head}</tr></thead>"]
    for group in grid.groups:
        if group.heading:
            text = f"{group.heading}: {group.note}" if group.note else group.heading
            span = f'<th colspan="{len(grid.columns)}" scope="rowgroup">{html(text)}</th>'
            parts.append(f'<tbody class="group"><tr>{span}</tr></tbody>')
        for block in grid.blocks(group.lines):
            lines = "\n".join(_html_line(grid, line, place, len(block)) for place, line in enumerate(block))
            parts.append(f"<tbody>\n{lines}\n</tbody>")
    notes = "<br>\n".join(map(html, grid.notes))
    return "\n".join([*parts, "</table></div>", *([f'<p class="note">{notes}</p>'] if notes else [])])


def _heading(column: Column) -> str:
    if not column.heading:
        return "<td></td>"
    words = ' class="text"' if column.align == "left" else ""
    told = f' title="{html(column.explanation)}"' if column.explanation else ""
    return f'<th{words} scope="col"{told}>{html(column.heading).replace(chr(10), "<br>")}</th>'


def _html_line(grid: Grid, line: Line, place: int, size: int) -> str:
    """Return the line at ``place`` of a block of ``size`` lines, whose merged entries stand in the first."""
    cells = []
    for number, (column, entry) in enumerate(zip(grid.columns, line, strict=True)):
        if not (column.merge and grid.columns[0].merge):
            cells.append(f"<td{_attributes(column, entry)}>{_content(entry)}</td>")
        elif not place:
            tag, scope = ("td", "") if number else ("th", ' scope="row"')
            rows = f' rowspan="{size}"' if size > 1 else ""
            cells.append(f"<{tag}{_attributes(column, entry)}{scope}{rows}>{_content(entry)}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def _attributes(column: Column, entry: Entry) -> str:
    looks = ["wrap" if column.wrap else "text" if column.align == "left" else "", entry.tone]
    shown = " ".join(look for look in looks if look)
    told = f' title="{html(entry.tooltip)}"' if entry.tooltip else ""
    return (f' class="{shown}"' if shown else "") + told


def _content(entry: Entry) -> str:
    if entry.image:
        return f'<img class="thumb" alt="{html(entry.text)}" src="{html(entry.image)}">'
    beside = f'<span class="ci">{html(entry.beside)}</span>' if entry.beside else ""
    return " ".join(part for part in (html(entry.text), beside) if part) + html(entry.mark)


def as_markdown(grid: Grid) -> str:
    """Return a table with its title in bold, the title alone of one without lines.

    What is in it makes no markup.
    """
    if not grid.lines:
        return f"**{markdown(grid.title)}**"
    head, *lines = [" | ".join(map(markdown, line)) for line in (grid.head, *grid.texts)]
    body = "\n".join(f"| {line} |" for line in (head, " | ".join(["---"] * len(grid.head)), *lines))
    notes = "\n".join(f"- {markdown(note)}" for note in grid.notes)
    return "\n\n".join(part for part in (f"**{markdown(grid.title)}**", body, notes) if part)


def as_csv(grid: Grid) -> str:
    """Return a table as CSV, its entries as the report words them: what tracking keeps of it."""
    return csv_text([grid.head, *grid.texts])


def as_terminal(grid: Grid, gap: int = 2, wrap: bool = False) -> Table:
    """Return a table for a terminal (rich), without what is too wide for one.

    ``gap``: spaces between columns; ``wrap``: long entries of words go on in the next line.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def plain(text: str) -> Text:
        return Text("\n".join(map(terminal, text.split("\n"))))

    caption = "\n".join(line for line in (grid.caption, *grid.notes) if line)
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, gap - 1, 0, 0),
        title=plain(grid.title),
        title_justify="left",
        caption=plain(caption) if caption else None,
        caption_justify="left",
        caption_style="",
    )
    shown = [place for place, column in enumerate(grid.columns) if column.narrow != "nothing"]
    marked = {place for place in shown if any(line[place].mark for line in grid.lines)}
    for place in shown:
        column = grid.columns[place]
        table.add_column(plain(column.heading), justify=column.align, no_wrap=not (wrap and column.align == "left"))
    for group in grid.groups:
        if group.heading:
            table.add_row(Text(terminal(group.heading), style="bold"), end_section=True)
        for block in grid.blocks(group.lines):
            for number, line in enumerate(block):
                texts = [_terminal_text(grid.columns, line, place, place in marked, number) for place in shown]
                table.add_row(*map(Text, map(terminal, texts)), end_section=number + 1 == len(block))
    return table


def _terminal_text(columns: tuple[Column, ...], line: Line, place: int, marked: bool, number: int) -> str:
    """Return an entry of the line ``number`` of a block; in a column with marks, those without one are as wide."""
    column, entry = columns[place], line[place]
    if number and column.merge and columns[0].merge:
        return ""
    text = entry.short if column.narrow == "short" else str(entry)
    return text if entry.mark or not marked else f"{text} "

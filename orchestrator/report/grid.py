"""One table of a report, made once and written as HTML, Markdown, terminal text or CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from orchestrator.engine.media import file_name

Tone = Literal["", "above", "miss"]
"""How a page shows an entry: plain, in bold (beyond chance) or in red (a promise that was not kept)."""


def bold(beyond: bool) -> Tone:
    """Return the tone of an entry that is ``beyond`` chance, or is not."""
    return "above" if beyond else ""


def red(missed: bool) -> Tone:
    """Return the tone of an entry whose promise was ``missed``, or was not."""
    return "miss" if missed else ""


@dataclass(frozen=True)
class Entry:
    """One place of a table: its text, what stands ``beside`` it (an interval, a remark), and a mark such as ``*``.

    ``tooltip`` and ``image`` (a ``data:`` address; ``text`` is then its description) are for pages only.
    """

    text: str
    beside: str = ""
    mark: str = ""
    tone: Tone = ""
    tooltip: str = ""
    image: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.text, self.beside) if part) + self.mark

    @property
    def short(self) -> str:
        """The text without what stands beside it."""
        return self.text + self.mark


@dataclass(frozen=True)
class Column:
    """One column: its heading (lines broken by ``\\n``), numbers at the ``right`` or words at the ``left``.

    ``wrap``: long sentences. ``merge``: equal entries of the first column below each other are written once, and with
    them those of other columns that merge. ``narrow``: what a terminal shows of its entries; of columns that narrow
    ``together`` it shows all intervals or none. ``explanation``: a tooltip of the heading.
    """

    heading: str
    align: Literal["left", "right"] = "right"
    wrap: bool = False
    merge: bool = False
    narrow: Literal["whole", "together", "short", "nothing"] = "whole"
    explanation: str = ""

    @property
    def name(self) -> str:
        """The heading in one line."""
        return self.heading.replace("\n", " ")


Line = tuple[Entry, ...]


@dataclass(frozen=True)
class Group:
    """Lines of a table under a heading of their own, with a ``note`` on pages; no heading for the only group."""

    heading: str
    lines: tuple[Line, ...]
    note: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: ``name`` is that of its file, ``title`` says what it holds, ``caption`` stands below it on a terminal.

    ``grouped_by``: heading of the column in which Markdown and CSV name the groups. ``notes``: lines below it, but
    for CSV.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    grouped_by: str = ""
    caption: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for line in self.lines:
            if len(line) != len(self.columns):
                raise ValueError(f"table {self.name!r}: a line of {len(line)} entries for {len(self.columns)} columns")

    @property
    def file(self) -> str:
        """The name of its file, without ending."""
        return file_name(self.name)

    @property
    def lines(self) -> list[Line]:
        """The lines of all groups."""
        return [line for group in self.groups for line in group.lines]

    @property
    def head(self) -> list[str]:
        """The headings as Markdown and CSV have them, that of the groups first."""
        return [*([self.grouped_by] if self.grouped_by else []), *(column.name for column in self.columns)]

    @property
    def texts(self) -> list[list[str]]:
        """The entries as text, under ``head``."""
        return [
            [*([group.heading] if self.grouped_by else []), *map(str, line)]
            for group in self.groups
            for line in group.lines
        ]

    def blocks(self, lines: Sequence[Line]) -> Iterator[list[Line]]:
        """Yield the ``lines`` of a group that merge, together; all of them for a table whose first column does not."""
        if not self.columns[0].merge:
            yield list(lines)
            return
        for _, block in groupby(lines, key=lambda line: line[0]):
            yield list(block)


def left(heading: str, **options: bool | str) -> Column:
    """Return a column of words."""
    return Column(heading, "left", **options)  # type: ignore[arg-type]  # options are those of ``Column``


def grid(name: str, title: str, columns: Iterable[object], body: Iterable[Iterable[object]]) -> Grid:
    """Return a table without groups; what is no column heads one of numbers, what is no entry is one by its text."""
    head = tuple(column if isinstance(column, Column) else Column(str(column)) for column in columns)
    return Grid(name, title, head, (group("", body),))


def group(heading: str, body: Iterable[Iterable[object]], note: str = "") -> Group:
    """Return a group of lines; what is no entry is one by its text."""
    return Group(heading, tuple(tuple(map(entry_of, line)) for line in body), note)


def entry_of(value: object) -> Entry:
    """Return ``value`` if it is an entry, else one with its text and nothing else."""
    return value if isinstance(value, Entry) else Entry(str(value))

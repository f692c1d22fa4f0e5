"""Lines for people: printed so that nothing in them steers the terminal; names with what they are, wrapped."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from orchestrator.engine.media import terminal_lines

WIDEST = 26
"""Of names; the text of a longer one begins in the line below it."""


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text on standard output, or on standard error; ``nl``: a line ends behind it."""
    click.echo(terminal_lines(text), err=err, nl=nl)


def described(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield names with their texts in a second column; a line that begins with a blank continues a text."""
    column = 2 + max((len(name) for name, _ in rows if len(name) <= WIDEST), default=WIDEST)
    for name, text in rows:
        if text and len(name) + 2 > column:
            yield name
            yield from wrapped(" " * column, text)
        else:
            yield from wrapped(f"{name:{column}}" if text else name, text)


def wrapped(head: str, text: str) -> list[str]:
    """Return ``text`` behind ``head``, and what does not fit into the line in lines below it."""
    below = " " * len(head)
    width = max(shutil.get_terminal_size().columns, len(below) + 20)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [head.rstrip()]

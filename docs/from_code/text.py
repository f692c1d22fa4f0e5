"""Docstrings and values as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

CODE = re.compile(r"(`+[^`]+`+)")
ROLE = re.compile(r":\w+:(?=`)")


def prose(text: str) -> str:
    """Return plain text with code in backticks as Markdown: what is no code is shown as it is written."""
    parts = CODE.split(ROLE.sub("", text))
    return "".join(part if index % 2 else literal(part) for index, part in enumerate(parts))


def literal(text: str) -> str:
    """Return text in which no character means anything to Markdown or HTML, but asterisks around a word."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return re.sub(r"(?<!\w)\\\*(\w+)\\\*(?!\w)", r"*\1*", re.sub(r"([*_\[\]\\])", r"\\\1", safe))


def code(value: object) -> str:
    """Return ``value`` as code, "" as nothing."""
    text = str(value)
    if not text:
        return ""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def value(found: Any) -> str:
    """Return a value of a plan as YAML would write it, as code."""
    if found is None:
        return "`null`"
    if isinstance(found, bool):
        return f"`{str(found).lower()}`"
    if isinstance(found, list | tuple):
        return f"`[{', '.join(str(one) for one in found)}]`" if found else "`[]`"
    if isinstance(found, float):
        return f"`{found:g}`"
    return code(found) if found != "" else '`""`'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; line breaks inside cells become spaces."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) for cell in line)} |" for line in lines)


def doc_of(found: object) -> str:
    """Return the docstring of an object itself, not of what it inherits from; "" without one."""
    return inspect.cleandoc(getattr(found, "__doc__", None) or "")


def summary(text: str) -> str:
    """Return the first sentence or line of a docstring on one line, without the verb of what a function returns."""
    first = " ".join(text.partition("\n\n")[0].split())
    bare = first.removeprefix("Return ")
    return first if bare == first else bare[:1].upper() + bare[1:]


def page(title: str, *blocks: str) -> str:
    """Return a page: its title and the blocks that are not empty."""
    return "\n\n".join([f"# {title}", *(block for block in blocks if block)]) + "\n"

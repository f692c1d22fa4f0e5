"""Docstrings taken apart: the parts of a component's text by label, and what a class says of each of its fields."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

from docs.from_code.text import doc_of

LABELS = ("Question", "Score", "Source", "Deviations", "Cost", "Not for")
"""Labels of paragraphs in the docstring of an attack; each is a part of its page."""
NAME = r"``(\w+)``(?: \([^)]*\))?"
FIELD = re.compile(
    rf"(?:^|(?<=[;.:]\s)|(?<=, and\s)|(?<=, where\s)){NAME}((?:(?:,| and|, and) {NAME})*): ", re.MULTILINE
)


def parts(text: str) -> dict[str, str]:
    """Return the paragraphs of a docstring by label; "" holds those without one, the first sentence among them.

    A paragraph that begins with "Score: " is the part ``Score``, and so is every further one up to the next label.
    """
    found: dict[str, list[str]] = {"": []}
    label = ""
    for paragraph in text.split("\n\n"):
        head, colon, rest = paragraph.partition(":")
        if colon and head in LABELS:
            label, paragraph = head, rest.strip()
        found.setdefault(label, []).append(paragraph)
    return {name: "\n\n".join(paragraphs) for name, paragraphs in found.items()}


def fields_of(kind: type) -> dict[str, str]:
    """Return what ``kind`` says of its fields: in its docstring (```name``: …;``) or in a string below the field."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "abc", "typing", "pydantic"):
            found |= in_docstring(doc_of(base)) | below_fields(base)
    return found


def in_docstring(text: str) -> dict[str, str]:
    """Return what a docstring says of fields: name → text, from ``name``: to the next one or the paragraph's end."""
    found = {}
    for paragraph in text.split("\n\n"):
        line = " ".join(paragraph.split())
        marks = list(FIELD.finditer(line))
        for mark, after in zip(marks, [*marks[1:], None], strict=False):
            said = line[mark.end() : after.start() if after else None].strip()
            said = re.sub(r"(;|\.|, and|, where)$", "", said)
            for name in re.findall(NAME, mark[0]):
                found[name] = said
    return found


def introduction(text: str) -> str:
    """Return what a docstring says before it comes to single fields."""
    kept = []
    for paragraph in text.split("\n\n"):
        line = " ".join(paragraph.split())
        mark = FIELD.search(line)
        before = line if mark is None else line[: mark.start()].strip()
        kept.append(re.sub(r"(;|, and|, where)$", ".", before))
    return "\n\n".join(part for part in kept if part)


def below_fields(kind: type) -> dict[str, str]:
    """Return the strings that stand below the fields of a class, by the field's name."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, TypeError):  # made at run time
        return {}
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return found

"""Text reaches a medium through one function: what writes past ``orchestrator.engine.media`` is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("orchestrator", "actors", "audits", "tune_spaces")
MEDIA = "orchestrator/engine/media.py"

WRITERS = {
    "print": {"orchestrator/cli/__init__.py": "before Click may be imported; its text is ours"},
    "click.echo": {"orchestrator/cli/lines.py": "in `say`, behind media"},
    "click.secho": {},
    "click.prompt": {
        "orchestrator/cli/new.py": "questions of ours, about what the user has typed",
        "orchestrator/cli/submit.py": "behind media",
    },
    "click.confirm": {"orchestrator/cli/permission.py": "behind media"},
    "console.print": {"orchestrator/engine/run/console.py": "lines behind media; tables, whose entries are Text"},
    "rich.markup.escape": {"orchestrator/engine/run/console.py": "titles of bars, which rich reads as markup"},
    "html.escape": {MEDIA: ""},
    "markupsafe.escape": {},
    "xml.etree.ElementTree": {MEDIA: "", "orchestrator/engine/ci/junit.py": "every text behind media"},
    "csv.writer": {MEDIA: ""},
    "csv.DictWriter": {},
    "savefig": {"orchestrator/report/style.py": "after settle_labels"},
}
"""Name → files that may use it, and why."""


def used(tree: ast.Module) -> Iterator[str]:
    """Yield those of ``WRITERS`` that a module uses, under whatever name a method's object has."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Attribute):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else ast.unparse(node.value)
            names = [f"{owner}.{node.attr}", node.attr] if node.attr != "print" else ["console.print"]
        elif isinstance(node, ast.Name):
            names = [node.id]
        yield from (name for name in names if name in WRITERS)


def test_text_reaches_its_medium_through_one_function() -> None:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    words = {name.rpartition(".")[2] for name in WRITERS}
    texts = {file: text for file in files if any(word in (text := file.read_text()) for word in words)}
    found = {(name, str(file.relative_to(ROOT))) for file, text in texts.items() for name in used(ast.parse(text))}
    allowed = {(name, file) for name, places in WRITERS.items() for file in places}
    assert found - allowed == set(), "use orchestrator.engine.media"
    assert allowed - found == set(), "writes no more: take it from the list"


def test_ways_around_are_seen() -> None:
    for line, name in (
        ("print(name)", "print"),
        ("from html import escape", "html.escape"),
        ("import click\nclick.echo(name)", "click.echo"),
        ("self.screen.print(name)", "console.print"),
        ("import csv\ncsv.writer(file)", "csv.writer"),
        ("figure.savefig(file)", "savefig"),
    ):
        assert list(used(ast.parse(line))) == [name]

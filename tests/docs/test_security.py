"""The threat model promises nothing that no test tries: each of its sections and rows names tests that are there."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "security.md").read_text("utf-8")
NAMED = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)(?:::(\w+))?`")
TESTED = "tested in"
FILES = [file.relative_to(ROOT) for file in sorted((ROOT / "tests").rglob("test_*.py"))]


def meant(name: str) -> list[Path]:
    """Return the test files whose paths end as the page says."""
    parts = Path(name).parts
    return [file for file in FILES if file.parts[-len(parts) :] == parts]


@functools.cache
def functions_in(file: Path) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def untested(page: str) -> list[str]:
    """Return the headings of sections, and the rows of tables with a column of tests, that name no test."""
    found, heading, column, said = [], "", -1, False
    for line in [*page.splitlines(), "# end"]:
        if mark := re.match(r"#+ (.*)", line):
            if heading not in ("", "Page", "Not covered") and not said:
                found.append(heading)
            heading, said = mark[1], False
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        column = column if cells and TESTED not in cells else cells.index(TESTED) if cells else -1
        if column >= 0 and TESTED not in cells and not set(line) <= set("|- ") and not NAMED.search(cells[column]):
            found.append(cells[0])
        said = said or bool(NAMED.search(line))
    return found


@pytest.mark.parametrize(("name", "test"), sorted(set(NAMED.findall(PAGE))))
def test_every_test_that_the_page_names_is_there_once(name: str, test: str) -> None:
    (file,) = meant(name)
    assert not test or test in functions_in(file)


def test_every_promise_names_a_test() -> None:
    assert untested(PAGE[PAGE.index("\n## ") :]) == []


def test_a_promise_without_a_test_is_noticed() -> None:
    row = "| what | tested in |\n|---|---|\n| {} | {} |\n"
    page = f"# Page\n## First\n{row.format('a', '`test_a.py`')}\n## Second\ntext\n### Third\n{row.format('b', '')}"
    assert untested(page + "\n`test_c.py`\n## Not covered\ntext") == ["Second", "b"]

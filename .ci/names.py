"""Refuse modules whose first line asks a question, and functions whose name is neither a verb nor a noun."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from imports import PACKAGES, ROOT

QUESTIONS = {"How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"}
NO_NAMES = {"asked", "found", "judged", "taken", "told"}
"""Of functions; they say that something was done, but neither what it does nor what it returns."""


def faults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and fault of a module's names."""
    first = (ast.get_docstring(tree) or "").split(maxsplit=1)[:1]
    if QUESTIONS.intersection(first):
        yield 1, f"begins with {first[0]!r}: name the thing that the module is"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") in NO_NAMES:
            yield node.lineno, f"function {node.name!r}: give it a verb, or name what it returns"


def main() -> int:
    """Print what is wrong, one line each; return the exit status."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for folder in (*PACKAGES, ".ci", "benchmarks", "docs", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, fault in faults(ast.parse(path.read_text()))
    ]
    for line in wrong:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

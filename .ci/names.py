"""Refuse modules whose first line asks a question ("What …", "Where …") where it should name the thing."""

from __future__ import annotations

import ast
import sys

from imports import PACKAGES, ROOT

QUESTIONS = {"How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"}


def main() -> int:
    """Print what is wrong, one line each; return the exit status."""
    wrong = [
        f"{path.relative_to(ROOT)}:1: begins with {first!r}: name the thing that the module is"
        for folder in (*PACKAGES, ".ci", "benchmarks", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for first in (ast.get_docstring(ast.parse(path.read_text())) or "").split(maxsplit=1)[:1]
        if first in QUESTIONS
    ]
    for line in wrong:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Refuse circles of modules, and imports inside functions except of packages that are slow to import.

``make lint`` runs it beside import-linter, whose contracts know packages but neither circles of single modules nor
where in a file an import stands. The packages that a function may import are ruff's list in pyproject.toml
(``banned-module-level-imports``): where start-up time counts, ruff forbids them at the top of a file.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
LINT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
PACKAGES = LINT["importlinter"]["root_packages"]
SLOW = set(LINT["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"])


def circle() -> list[str]:
    """Return a circle of modules that import each other, the first of them again at the end; empty if there is none."""
    sys.path.insert(0, str(ROOT))
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))  # graphlib lists what is imported before who imports it
    return []


def imports_inside(node: ast.AST, inside: bool = False) -> Iterator[tuple[int, str]]:
    """Yield line and package of imports that stand in a function or a class; "." is a relative import's package."""
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name.split(".")[0]) for alias in child.names)
        elif inside and isinstance(child, ast.ImportFrom):
            yield child.lineno, "." if child.level else str(child.module).split(".")[0]
        deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from imports_inside(child, inside or deeper)


def main() -> int:
    """Print what is wrong, one line each; return the exit status."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {package} is imported inside a function"
        for folder in (*PACKAGES, "tests", "benchmarks", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, package in imports_inside(ast.parse(path.read_text()))
        if package not in SLOW
    ]
    if found := circle():
        wrong.append(f"circle of imports: {' -> '.join(found)}")
    for line in wrong:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

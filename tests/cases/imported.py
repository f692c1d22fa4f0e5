"""What is imported when a file of this repository is, read off the sources: nothing is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def imported_with(file: Path) -> dict[str, str]:
    """Return the packages from elsewhere that importing ``file`` imports: name → a file that does it at its top.

    Packages that others import, from elsewhere, are not followed.
    """
    found: dict[str, str] = {}
    seen, rest = set(), [file]
    while rest:
        one = rest.pop()
        if one in seen:
            continue
        seen.add(one)
        for name in names_of(one):
            own = files_of(name)
            rest += own
            if not own:
                found.setdefault(name.partition(".")[0], one.relative_to(ROOT).as_posix())
    return found


@functools.cache
def names_of(file: Path) -> tuple[str, ...]:
    """Return the dotted names that a file imports at its top, or in a class or a condition there."""
    names = []
    for node in at_the_top(ast.parse(file.read_text("utf-8")).body):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{file}: imports here name the package"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def at_the_top(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a file is imported; what is for type checkers alone does not."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from at_the_top(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody"):
                yield from at_the_top(getattr(node, part, []))


@functools.cache
def files_of(name: str) -> list[Path]:
    """Return the files that importing a dotted name runs: packages, and the module; none if it is from elsewhere."""
    parts = name.split(".")
    places = [ROOT.joinpath(*parts[: count + 1]) for count in range(len(parts))]
    if not places[0].is_dir():
        return []
    files = [place / "__init__.py" for place in places] + [place.with_suffix(".py") for place in places]
    return [each for each in files if each.is_file()]

"""Pages of the Python interface: every name that a package offers, in the words of its own docstring."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from docs.from_code.text import code, page, prose, table

FOLDER = "reference/python"
TOPS = ("orchestrator", "audits", "tune_spaces")


def pages() -> dict[str, str]:
    """Return the pages by their place in the documentation."""
    packages = offering()
    rows = [
        (f"[`{name}`]({name}.md)", prose(doc), ", ".join(code(each) for each in names))
        for name, (doc, names) in packages.items()
    ]
    found = {
        f"{FOLDER}/index.md": page(
            "Python",
            "`import orchestrator` audits from scripts and notebooks ([how](../../how-to/python.md)); the packages "
            "below `audits` are the science, usable without plans, store and Ray. These are the names that packages "
            "offer; modules below them may change without notice.",
            table(("package", "", "names"), rows),
        )
    }
    shown: dict[str, str] = {}
    for name, (doc, names) in packages.items():
        whole = {f"{home}.{each}": each for each, home in names.items()}
        blocks = [f"::: {place}" for place in whole if place not in shown]
        known = ", ".join(f"[{code(each)}][{place}]" for place, each in whole.items() if place in shown)
        blocks += [f"Also of this package: {known}."] if known else []
        shown |= {place: name for place in whole if place not in shown}
        found[f"{FOLDER}/{name}.md"] = page(name, prose(doc), *blocks)
    return found


def offering() -> dict[str, tuple[str, dict[str, str]]]:
    """Return the packages that offer names: package → the first paragraph of its docstring, and name → module."""
    found = {}
    for package in (name for top in TOPS for name in packages_below(top)):
        tree = ast.parse(file_of(package).read_text("utf-8"))
        if names := dict(sorted(offered(package, tree))):
            doc = (ast.get_docstring(tree) or "").partition("\n\n")[0]
            found[package] = " ".join(doc.split()), names
    return found


def packages_below(top: str) -> Iterator[str]:
    """Yield a package and all packages in it, but those of plugins' tables, which only plans name."""
    yield top
    folder = file_of(top).parent
    for module in pkgutil.iter_modules([str(folder)]):
        if module.ispkg:
            yield from packages_below(f"{top}.{module.name}")


def file_of(package: str) -> Path:
    """Return the ``__init__.py`` of a package."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, package
    return Path(spec.origin)


def offered(package: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that ``__all__`` or a table of ``lazily`` lists, and the module that defines each."""
    imported = {
        alias.name: f"{node.module}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            yield from ((name, imported.get(name, package)) for name in ast.literal_eval(node.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazily":
            for module, names in ast.literal_eval(node.args[1]).items():
                yield from ((name, module) for name in names)

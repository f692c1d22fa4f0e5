"""The version of the code behind a result: changed code changes keys, changed comments and docstrings do not."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

OURS = ("orchestrator", "actors", "tune_spaces", "audits")
"""Packages whose modules count, beside those of the modules that are asked about (a kind of the user's own)."""

CANNOT_CHANGE_A_RESULT = (
    "audits.credentials",
    "audits.data.duplicates",
    "audits.errors",
    "audits.registry",
    "orchestrator.engine.kind",
    "orchestrator.engine.plan.errors",
    "orchestrator.engine.run.console",
    "orchestrator.engine.store",
    "orchestrator.report",
)
"""Modules, and packages with all that is in them, that find names, word messages, warn, draw, keep what was made."""

COUNTS_ALL_THE_SAME = ("orchestrator.engine.store.payloads",)
"""Exceptions from that: how arrays and tables become bytes."""


@functools.cache
def code_version(modules: tuple[str, ...], root: Path | None = None) -> str:
    """Return the hash (16 hex characters) of every module of ours that ``modules`` reach by their imports.

    ``modules`` are those of a stage's body and of the components that take part in a job (architecture, method, kind of
    evidence, attacks): those are found by name, so the code of others does not count and a new attack leaves old scores
    valid. ``root``: the folder that holds the packages (default: where each is installed). Raises RuntimeError for a
    module that has no source file.
    """
    tree = hashlib.sha256()
    for name in reached(modules, root):
        tree.update(f"{name}\n{source_of(name, tops_of(modules), root).code}\n".encode())
    return tree.hexdigest()[:16]


def reached(modules: tuple[str, ...], root: Path | None = None) -> list[str]:
    """Return the names of all modules of ours that ``modules`` reach, themselves included, sorted.

    Every import statement counts, wherever it stands: at the top, in a function, or for a type checker alone.
    """
    waiting, names = list(modules), set[str]()
    while waiting:
        name = waiting.pop()
        if name in names or not counts(name):
            continue
        names.add(name)
        waiting += source_of(name, tops_of(modules), root).imports
    return sorted(names)


def tops_of(modules: tuple[str, ...]) -> frozenset[str]:
    """Return the packages whose modules count for ``modules``."""
    return frozenset((*OURS, *(name.partition(".")[0] for name in modules)))


def counts(module: str) -> bool:
    """Return whether the code of ``module`` can change a result."""

    def within(places: tuple[str, ...]) -> bool:
        return any(module == place or module.startswith(f"{place}.") for place in places)

    return within(COUNTS_ALL_THE_SAME) or not within(CANNOT_CHANGE_A_RESULT)


class Source:
    """One module's source: ``code``, a digest of its syntax tree, and ``imports``, the modules of ours it leads to."""

    def __init__(self, name: str, tops: frozenset[str], root: Path | None) -> None:
        file = file_of(name, tops, root)
        if file is None:
            raise RuntimeError(f"module {name} has no source file, so no version of its code can be told")
        tree = ast.parse(file.read_text("utf-8"))
        self.code = hashlib.sha256(text_of(tree).encode()).hexdigest()
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        self.imports = tuple(dict.fromkeys(imported(tree, package, tops, root)))


@functools.cache
def source_of(name: str, tops: frozenset[str], root: Path | None = None) -> Source:
    """Return the source of a module, read once per process."""
    return Source(name, tops, root)


def imported(tree: ast.Module, package: str, tops: frozenset[str], root: Path | None) -> Iterator[str]:
    """Yield the modules of ours that the import statements of a module in ``package`` name.

    Raises RuntimeError where a package is asked for a name that it only hands on lazily: no import statement leads on
    to the module that defines it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if file_of(alias.name, tops, root))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            submodules = [name for alias in node.names if file_of(name := f"{module}.{alias.name}", tops, root)]
            yield from submodules
            if len(submodules) < len(node.names) and file_of(module, tops, root):
                refuse_lazy(module, {alias.name for alias in node.names}, tops, root)
                yield module
        elif isinstance(node, ast.Call) and (package_of := whole_table(node)):
            yield from modules_in(package_of, tops, root)


def whole_table(node: ast.Call) -> str:
    """Return the package of a ``Registry(…, package, whole=True)``, all of whose modules count; "" for other calls."""
    if isinstance(node.func, ast.Name) and node.func.id == "Registry" and len(node.args) == 2:
        whole = any(each.arg == "whole" and ast.unparse(each.value) == "True" for each in node.keywords)
        if whole and isinstance(node.args[1], ast.Constant):
            return str(node.args[1].value)
    return ""


def modules_in(package: str, tops: frozenset[str], root: Path | None) -> Iterator[str]:
    """Yield the modules of a package, itself left out."""
    file = file_of(package, tops, root)
    if file is not None:
        yield from (f"{package}.{each.stem}" for each in sorted(file.parent.glob("*.py")) if each != file)


def refuse_lazy(module: str, names: set[str], tops: frozenset[str], root: Path | None) -> None:
    """Raise RuntimeError if the package ``module`` hands one of ``names`` on lazily."""
    homes = lazy_homes(module, tops, root)
    for name in sorted(names & homes.keys() - {name for name in names if file_of(f"{module}.{name}", tops, root)}):
        raise RuntimeError(
            f"from {module} import {name}: a version of the code cannot follow it, because the package imports it only "
            f"when it is read; import it from {homes[name]}"
        )


@functools.cache
def lazy_homes(module: str, tops: frozenset[str], root: Path | None = None) -> Mapping[str, str]:
    """Return what a package hands on through ``audits.lazy.lazily``: name → the module that defines it."""
    file = file_of(module, tops, root)
    if file is None or file.name != "__init__.py":
        return {}
    calls = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
    tables = [ast.literal_eval(call.args[1]) for call in calls if ast.unparse(call.func) == "lazily"]
    return {name: home for table in tables for home, names in table.items() for name in names}


@functools.cache
def file_of(name: str, tops: frozenset[str], root: Path | None = None) -> Path | None:
    """Return the source file of a module of the packages ``tops``, None where there is none."""
    top, *rest = name.split(".")
    if top not in tops:
        return None
    base = (root / top if root else package_folder(top)).joinpath(*rest)
    for file in (base / "__init__.py", base.with_suffix(".py")):
        if file.is_file():
            return file
    return None


@functools.cache
def package_folder(package: str) -> Path:
    """Return the folder of an installed package; on a cluster's worker each may lie in a place of its own.

    Of a module that is a single file: that file without its suffix.
    """
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise RuntimeError(f"package {package} is not installed")
    file = Path(found.origin).resolve()
    return file.parent if file.name == "__init__.py" else file.with_suffix("")


def text_of(node: Any) -> str:
    """Return a syntax tree as text, without positions, comments and strings that stand alone."""
    if isinstance(node, list):
        return f"[{','.join(text_of(item) for item in node if not is_docstring(item))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, getattr(node, name, None)) for name in node._fields if name != "type_ignores")
    # Fields that are empty are left out: newer Pythons add such fields to old nodes.
    inside = ",".join(f"{name}={text_of(value)}" for name, value in fields if value is not None and value != [])
    return f"{type(node).__name__}({inside})"


def is_docstring(node: Any) -> bool:
    """Return whether ``node`` is a string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

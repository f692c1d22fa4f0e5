"""The version of the code behind a result: changed code changes keys, changed comments and docstrings do not."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from audits.own import sources
from audits.own.sources import OURS

CANNOT_CHANGE_A_RESULT = (
    "audits.credentials",
    "audits.data.duplicates",
    "audits.errors",
    "audits.own.code",
    "audits.own.import_path",
    "audits.own.libraries",
    "audits.own.permission",
    "audits.own.sources",
    "audits.owners",
    "audits.registry",
    "audits.writing",
    "orchestrator.engine.kind",
    "orchestrator.engine.plan.errors",
    "orchestrator.engine.run.console",
    "orchestrator.engine.store",
    "orchestrator.report",
)
"""Modules, and packages with all that is in them, that find names, word messages, warn, draw, keep what was made."""

COUNTS_ALL_THE_SAME = ("orchestrator.engine.store.payloads",)
"""Exceptions from that: how arrays and tables become bytes."""

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of a statement that hold others."""
REGISTRY = "Name(id='Registry'"
"""What is in the text of a module that may have a table of components."""
INNER = (ast.AST, list)


@functools.cache
def code_version(modules: tuple[str, ...], root: Path | None = None) -> str:
    """Return the hash (16 hex characters) of every module of ours that ``modules`` reach by their imports.

    ``modules`` are those of a stage's body and of the components that take part in a job (architecture, method, kind of
    evidence, attacks): those are found by name, so the code of others does not count and a new attack leaves old scores
    valid. Of a user's own modules all count that lie in the same package or, unless it is an installed one, below the
    folder that holds it, as they were when they were imported (``audits.own.sources``). ``root``: the folder that holds
    the packages (default: where each is installed). Raises RuntimeError for a module that has no source file.
    """
    tree, tops = hashlib.sha256(), tops_of(modules)
    for name in reached(modules, root):
        tree.update(f"{name}\n{source(name, tops, root).code}\n".encode())
    return tree.hexdigest()[:16]


def reached(modules: tuple[str, ...], root: Path | None = None) -> list[str]:
    """Return the names of all modules of ours that ``modules`` reach, themselves included, sorted.

    Every import statement counts, wherever it stands: at the top, in a function, or for a type checker alone.
    """
    waiting, names, tops = list(modules), set[str](), tops_of(modules)
    while waiting:
        name = waiting.pop()
        if name in names or not counts(name):
            continue
        names.add(name)
        waiting += source(name, tops, root).imports
        waiting += packages_above(name, tops, root)
    return sorted(names)


def packages_above(name: str, tops: frozenset[str], root: Path | None) -> list[str]:
    """Return the packages that hold a user's module: what stands in their ``__init__.py`` runs before it."""
    if name.partition(".")[0] in OURS:
        return []
    parts = name.split(".")
    above = (".".join(parts[:length]) for length in range(1, len(parts)))
    return [package for package in above if file_of(package, tops, root)]


def tops_of(modules: tuple[str, ...]) -> frozenset[str]:
    """Return the packages whose modules count for ``modules``, beside those in the folders of users' own."""
    return frozenset((*OURS, *(name.partition(".")[0] for name in modules), *sources.shipped_tops()))


@functools.cache
def counts(module: str) -> bool:
    """Return whether the code of ``module`` can change a result."""

    def within(places: tuple[str, ...]) -> bool:
        return any(module == place or module.startswith(f"{place}.") for place in places)

    return within(COUNTS_ALL_THE_SAME) or not within(CANNOT_CHANGE_A_RESULT)


class Source:
    """One module's source: ``code``, a digest of its syntax tree, and ``imports``, the modules of ours it leads to."""

    def __init__(self, name: str, tops: frozenset[str], root: Path | None) -> None:
        file = Path(sources.MAIN) if name.startswith(f"{sources.MAIN}.") else file_of(name, tops, root)
        if file is None:
            raise RuntimeError(f"module {name} has no source file, so no version of its code can be told")
        tree = parsed(name, file, root)
        text = text_of(tree)
        self.code = hashlib.sha256(text.encode()).hexdigest()
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        nodes = ast.walk(tree) if REGISTRY in text else statements(tree)
        self.imports = tuple(dict.fromkeys(imported(nodes, package, tops, root)))


def parsed(name: str, file: Path, root: Path | None) -> ast.Module:
    """Return the syntax tree of a module: of a user's own, that of the source that was imported."""
    if root is not None or name.partition(".")[0] in OURS:
        return ast.parse(file.read_text("utf-8"))
    try:
        return ast.parse(sources.text_of(name, file))
    except SyntaxError as error:
        raise BadInput(f"module {name} ({file}) cannot be read as Python: {error.msg} in line {error.lineno}") from None


def source(name: str, tops: frozenset[str], root: Path | None = None) -> Source:
    """Return the source of a module of ours, or of one of a user's own among ``tops``."""
    if root is not None or name.partition(".")[0] in OURS:
        return source_of(name, frozenset(OURS) if root is None else tops, root)
    return source_of_user(name, tops)


@functools.cache
def source_of(name: str, tops: frozenset[str], root: Path | None = None) -> Source:
    """Return the source of a module, read once per process."""
    return Source(name, tops, root)


@functools.cache
def source_of_user(name: str, tops: frozenset[str]) -> Source:
    """Return the source of a user's module, read once until users' code is forgotten."""
    return Source(name, tops, None)


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements of a module, wherever they stand, and what holds some: a tenth of its nodes."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in BLOCKS:
            waiting += getattr(node, block, ())


def imported(nodes: Iterable[ast.AST], package: str, tops: frozenset[str], root: Path | None) -> Iterator[str]:
    """Yield the modules of ours that the import statements among the ``nodes`` of a module in ``package`` name.

    Raises RuntimeError where a module of ours asks a package for a name that it only hands on lazily: no import
    statement leads on to the module that defines it. Of users' own the module that defines it counts.
    """
    ours = package.partition(".")[0] in OURS
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if file_of(alias.name, tops, root))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            submodules = [name for alias in node.names if file_of(name := f"{module}.{alias.name}", tops, root)]
            yield from submodules
            if len(submodules) < len(node.names) and file_of(module, tops, root):
                if ours:
                    refuse_lazy(module, {alias.name for alias in node.names}, tops, root)
                else:
                    homes = lazy_homes(module, tops, root)
                    yield from (homes[alias.name] for alias in node.names if alias.name in homes)
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
    if top == sources.MAIN:
        return None
    if top not in tops:
        beside = () if root else homes_of(tops)
        if not any(sources.file_below(folder, name) for folder in beside):
            return None
        found = sources.folder_of(top)  # that of an installed one, if there is one of this name
        return sources.file_below(found, name) if found in beside else None
    base = (root / top if root else package_folder(top)).joinpath(*rest)
    for file in (base / "__init__.py", base.with_suffix(".py")):
        if file.is_file():
            return file
    return None


@functools.cache
def homes_of(tops: frozenset[str]) -> tuple[Path, ...]:
    """Return the folders of users' own packages and files among ``tops``: whatever else lies there counts, too."""
    return sources.homes(sorted(tops))


@functools.cache
def package_folder(package: str) -> Path:
    """Return the folder of an installed package; on a cluster's worker each may lie in a place of its own.

    Of a module that is a single file: that file without its suffix.
    """
    found = importlib.util.find_spec(package)
    if found is not None and found.origin is None and found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations))).resolve()  # a folder without __init__.py
    if found is None or found.origin is None:
        raise RuntimeError(f"package {package} is not installed")
    file = Path(found.origin).resolve()
    return file.parent if file.name == "__init__.py" else file.with_suffix("")


def forget_users_code() -> None:
    """Let sources of users' own be looked for and read anew."""
    for remembered in (code_version, source_of_user, file_of, homes_of, package_folder):
        remembered.cache_clear()


def text_of(node: Any) -> str:
    """Return a syntax tree as text, without positions, comments and strings that stand alone."""
    if isinstance(node, ast.AST):
        inside = []
        for name in node._fields:
            value = getattr(node, name, None)
            # Fields that are empty are left out: newer Pythons add such fields to old nodes.
            if value is not None and value != [] and name != "type_ignores":
                text = text_of(value) if isinstance(value, INNER) else repr(value)
                inside.append(f"{name}={text}")
        return f"{type(node).__name__}({','.join(inside)})"
    if isinstance(node, list):
        return f"[{','.join([text_of(item) for item in node if not is_docstring(item)])}]"
    return repr(node)


def is_docstring(node: Any) -> bool:
    """Return whether ``node`` is a string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

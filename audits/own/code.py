"""``python:module:name``: an object of a user's own, imported from the current folder or the Python path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from audits.errors import BadInput, did_you_mean
from audits.own.permission import PREFIX, require_permission
from audits.own.sources import forget, note, was_imported_before_edit


def taken_apart(name: str) -> tuple[str, str]:
    """Return module and name of ``python:module:name``; raises BadInput for another form."""
    module, _, attribute = name.removeprefix(PREFIX).partition("?")[0].partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise BadInput(f"{name}: write it as python:module:name, for example python:my_package.nets:SmallNet")
    return module, attribute


def load(name: str, root: Path | None = None) -> Any:
    """Return the object that ``python:module:name`` names.

    Its module is looked for in ``root`` (the current folder when None), then on the Python path. Raises BadInput in one
    line where it may not run, cannot be imported, or has no such object.
    """
    module_name, attribute = taken_apart(name)
    require_permission([(name, root)])
    folder = Path.cwd() if root is None else root
    search_first(folder)
    if was_imported_before_edit(module_name):
        forget(module_name)
    before = set(sys.modules)
    try:
        with without_bytecode():
            module = importlib.import_module(module_name)
    except Exception as error:  # the user's code may raise anything; the one line says what
        raise BadInput(
            f"{name}: importing {module_name!r} (in {folder} and on the Python path) raised "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error
    finally:  # what an import that failed has left is imported anew after an edit, too
        note(module_name, before)
    if not hasattr(module, attribute):
        raise BadInput(f"{name}: {module_name} has no {attribute!r}{did_you_mean(attribute, vars(module))}")
    return getattr(module, attribute)


def search_first(folder: Path) -> None:
    """Let modules be looked for in ``folder`` before all other places, from now on: some are imported late."""
    place = str(folder.resolve())
    if sys.path[:1] != [place]:
        if place in sys.path:
            sys.path.remove(place)
        sys.path.insert(0, place)
    importlib.invalidate_caches()


@contextmanager
def without_bytecode() -> Iterator[None]:
    """Write no bytecode: Python takes that of an edit within the same second for the new source's."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def first_line(error: BaseException) -> str:
    """Return the first line of what an exception says."""
    return next(iter(str(error).strip().splitlines()), "no message")

"""``python:module:name``: an object of a user's own, imported from the Python path or the current folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from audits.errors import BadInput, did_you_mean
from audits.own.import_path import search_for, searched_last
from audits.own.permission import PREFIX, require_permission
from audits.own.sources import (
    MAIN,
    file_below,
    folder_of,
    forget,
    note,
    shipped_tops,
    was_imported_before_edit,
)


def taken_apart(name: str) -> tuple[str, str]:
    """Return module and name of ``python:module:name``; raises BadInput for another form."""
    module, _, attribute = name.removeprefix(PREFIX).partition("?")[0].partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), attribute]):
        raise BadInput(f"{name}: write it as python:module:name, for example python:my_package.nets:SmallNet")
    return module, attribute


def load(name: str, root: Path | None = None) -> Any:
    """Return the object that ``python:module:name`` names.

    Its module is looked for on the Python path, then in ``root`` (the current folder when None). Raises BadInput in one
    line where it may not run, cannot be imported, is hidden by another of its name, or has no such object.
    """
    module_name, attribute = taken_apart(name)
    require_permission([(name, root)])
    folder = (Path.cwd() if root is None else root).resolve()
    if was_imported_before_edit(module_name):
        forget(module_name)
    if module_name not in sys.modules or not searched_last(folder):
        search_for(module_name.partition(".")[0], folder)
    require_first(name, module_name, folder)
    before = set(sys.modules)
    try:
        with without_bytecode():
            module = importlib.import_module(module_name)
    except Exception as error:  # the user's code may raise anything; the one line says what
        raise BadInput(
            f"{name}: importing {module_name!r} (on the Python path and in {folder}) raised "
            f"{type(error).__name__}: {first_line(error)}"
        ) from error
    finally:  # what an import that failed has left is imported anew after an edit, too
        note(module_name, before)
    if not hasattr(module, attribute):
        raise BadInput(f"{name}: {module_name} has no {attribute!r}{did_you_mean(attribute, vars(module))}")
    return getattr(module, attribute)


def require_first(name: str, module: str, folder: Path) -> None:
    """Raise BadInput where ``folder`` has ``module`` and Python finds another one of that name before it."""
    top = module.partition(".")[0]
    here = file_below(folder, top)
    if top == MAIN or top in shipped_tops() or here is None or (there := folder_of(top)) == folder:
        return
    raise BadInput(
        f"{name}: Python finds another module {top!r} ({there or 'its own'}) before {here}: what is installed comes "
        "first; rename yours"
    )


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

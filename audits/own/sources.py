"""Source of users' modules as it was when they were imported, so that keys tell the code that runs and no newer one."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from audits.own.import_path import INSTALLED
from audits.own.notebook import text_in_main

OURS = ("orchestrator", "actors", "tune_spaces", "audits")
"""Packages of this project, which are not users' whatever folder they lie in."""

MAIN = "__main__"
STARTED = time.time()


@dataclass(frozen=True)
class Noted:
    """A module's source file, and what stood in it when it was imported or first read."""

    file: Path
    text: str


_noted: dict[str, Noted] = {}
_behind: dict[str, tuple[str, ...]] = {}
_shipped: set[str] = set()
_of_main: dict[str, Any] = {}


def is_installed(folder: Path) -> bool:
    """Return whether modules of ``folder`` were installed there, each package apart from the others."""
    return folder.name in INSTALLED or (folder.is_dir() and any(folder.glob("*.dist-info")))


def folder_of(module: str) -> Path | None:
    """Return the folder that holds the package or file at the top of ``module``; None where there is none."""
    top = module.partition(".")[0]
    if top == MAIN:
        return None
    known = sys.modules.get(top)
    try:
        spec = known.__spec__ if known is not None else importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ())
    if places:
        return Path(places[0]).resolve().parent
    return Path(spec.origin).resolve().parent if spec.has_location and spec.origin else None


def homes(tops: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders all of whose modules are of the same user as ``tops``; none for installed packages."""
    found = [folder_of(top) for top in tops if top not in OURS]
    return tuple(dict.fromkeys(folder for folder in found if folder is not None and not is_installed(folder)))


def file_below(folder: Path, module: str) -> Path | None:
    """Return the source file of ``module`` in ``folder``, None where there is none."""
    base = folder.joinpath(*module.split("."))
    return next((file for file in (base / "__init__.py", base.parent / f"{base.name}.py") if file.is_file()), None)


def text_of(module: str, file: Path) -> str:
    """Return the source of ``module`` as it was noted; one that was not is noted now."""
    if module not in _noted:
        text = main_text(module) if module.startswith(f"{MAIN}.") else read(module, file)
        _noted[module] = Noted(file, text)
    return _noted[module].text


def read(module: str, file: Path) -> str:
    """Return what stands in the source file of ``module``; raises BadInput where it cannot be read."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the source of module {module} ({file}) cannot be read: {error}") from None


def note(module: str, before: Mapping[str, object] | Iterable[str]) -> None:
    """Note the sources of ``module`` and of all modules of its user that were imported with it, not ``before``."""
    folder, top = folder_of(module), module.partition(".")[0]
    for name in sorted({*sys.modules}.difference(before) | {module}):
        place = getattr(sys.modules.get(name), "__file__", None)
        if name.partition(".")[0] in OURS or not place or not place.endswith(".py") or folder is None:
            continue
        file = Path(place).resolve()
        if name in _noted and _noted[name].file != file:
            del _noted[name]
        if file.is_relative_to(folder) and (name.partition(".")[0] == top or not is_installed(folder)):
            text_of(name, file)


def was_imported_before_edit(module: str) -> bool:
    """Return whether ``module`` was imported by somebody else, and its file was changed since this process began.

    Nobody can tell then which of the two sources runs.
    """
    loaded = sys.modules.get(module)
    place = getattr(loaded, "__file__", None)
    if module in _noted or not place or module == "__main__":
        return False
    try:
        return Path(place).stat().st_mtime >= STARTED
    except OSError:
        return False


def forget_edited(folder: Path | None = None) -> bool:
    """Forget all modules of users if the file of one was edited, or lies elsewhere now; return whether it was so.

    They are imported anew when they are next asked for. ``folder``: where modules are looked for first (the current
    folder by default). To be called where a command or a run begins, and never in the midst of one.
    """
    first = Path.cwd() if folder is None else folder
    if not any(edited(module, noted, first) for module, noted in _noted.items()):
        return False
    for module in list(_noted):
        forget(module)
    return True


def edited(module: str, noted: Noted, first: Path) -> bool:
    """Return whether the source of ``module`` is not what it was, or another file has taken its place."""
    if module.startswith(f"{MAIN}."):
        return main_text(module) != noted.text
    found = file_below(first.resolve(), module)
    if found is not None and found != noted.file:
        return True
    try:
        return noted.file.read_text("utf-8") != noted.text
    except (OSError, UnicodeDecodeError):
        return True


def forget(module: str) -> None:
    """Let ``module`` be imported anew, from its source: bytecode of a source of the same second may be older."""
    noted = _noted.pop(module, None)
    if module.startswith(f"{MAIN}."):
        return
    loaded = sys.modules.pop(module, None)
    file = noted.file if noted else Path(getattr(loaded, "__file__", None) or "")
    if file.suffix == ".py":
        with suppress(OSError):  # of a folder that may not be written
            Path(importlib.util.cache_from_source(str(file))).unlink()


def shipped(tops: Iterable[str]) -> None:
    """Take ``tops`` for users' own: they were shipped to this worker, each perhaps into a folder of its own."""
    _shipped.update(tops)


def shipped_tops() -> frozenset[str]:
    """Return the packages and files that were shipped to this worker."""
    return frozenset(_shipped)


def stand_behind(name: str, modules: tuple[str, ...]) -> None:
    """Note the modules behind the component that plans call ``name``."""
    _behind[name] = tuple(module for module in modules if module and not is_ours(module))


def behind(name: str) -> tuple[str, ...]:
    """Return the modules of users behind the component that plans call ``name``; none for one of this project."""
    return _behind.get(name, ())


def module_of(found: Any) -> str:
    """Return the module of an object; of one in ``__main__`` a name for it alone, whose source is its own."""
    module = str(getattr(found, "__module__", ""))
    if module != MAIN:
        return module
    name = f"{MAIN}.{getattr(found, '__qualname__', type(found).__name__)}"
    _of_main[name] = found
    return name


def main_text(name: str) -> str:
    """Return the source of an object in ``__main__`` and of all that it uses there; see ``text_in_main``."""
    if name not in _of_main:
        raise BadInput(f"{name} is not known here; code of a notebook stays in its process: put it into a module")
    return text_in_main(_of_main[name], vars(sys.modules[MAIN]))


def is_ours(module: str) -> bool:
    """Return whether ``module`` is one of this project's."""
    return module.partition(".")[0] in OURS


def place_of(top: str) -> Path | None:
    """Return the folder of a user's package, or its single file; None of one that is installed or not found."""
    folder = folder_of(top)
    if top in OURS or top == MAIN or folder is None or is_installed(folder):
        return None
    return folder / top if (folder / top).is_dir() else folder / f"{top}.py"


def travelling() -> list[Path]:
    """Return the packages and files of users that this process has imported and that are not installed."""
    tops = dict.fromkeys(module.partition(".")[0] for module in _noted)
    return [place for top in tops if (place := place_of(top)) is not None and place.exists()]


def noted_files() -> dict[str, Path]:
    """Return the files of all modules that were noted."""
    return {module: noted.file for module, noted in _noted.items()}

"""Source of users' modules as it was when they were imported, so that keys tell the code that runs and no newer one."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from audits.errors import BadInput

OURS = ("orchestrator", "actors", "tune_spaces", "audits")
"""Packages of this project, which are not users' whatever folder they lie in."""

STARTED = time.time()
INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Noted:
    """A module's source file, and what stood in it when it was imported or first read."""

    file: Path
    text: str


_noted: dict[str, Noted] = {}
_shipped: set[str] = set()


def is_installed(folder: Path) -> bool:
    """Return whether modules of ``folder`` were installed there, each package apart from the others."""
    return folder.name in INSTALLED or (folder.is_dir() and any(folder.glob("*.dist-info")))


def folder_of(module: str) -> Path | None:
    """Return the folder that holds the package or file at the top of ``module``; None where there is none."""
    top = module.partition(".")[0]
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
        _noted[module] = Noted(file, read(module, file))
    return _noted[module].text


def read(module: str, file: Path) -> str:
    """Return what stands in the source file of ``module``; raises BadInput where it cannot be read."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the source of module {module} ({file}) cannot be read: {error}") from None


def note(module: str, before: Mapping[str, object] | Iterable[str]) -> None:
    """Note the sources of ``module`` and of all modules of its user that were imported with it, not ``before``."""
    folder, top, known = folder_of(module), module.partition(".")[0], set(before)
    for name, loaded in list(sys.modules.items()):
        if (name in known and name != module) or name.partition(".")[0] in OURS:
            continue
        place = getattr(loaded, "__file__", None)
        if not place or not place.endswith(".py") or folder is None:
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
    loaded = sys.modules.pop(module, None)
    file = noted.file if noted else Path(getattr(loaded, "__file__", None) or "")
    if file.suffix == ".py":
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


def shipped(tops: Iterable[str]) -> None:
    """Take ``tops`` for users' own: they were shipped to this worker, each perhaps into a folder of its own."""
    _shipped.update(tops)


def shipped_tops() -> frozenset[str]:
    """Return the packages and files that were shipped to this worker."""
    return frozenset(_shipped)


def noted_files() -> dict[str, Path]:
    """Return the files of all modules that were noted."""
    return {module: noted.file for module, noted in _noted.items()}

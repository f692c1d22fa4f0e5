"""The import path: the working folder, which may be somebody else's, is not on it by itself.

Python puts it in front by ``python -m``, by ``python -c`` and by an empty or relative entry of PYTHONPATH, and Ray puts
it in front for its workers. A file ``numpy.py`` beside a plan would then run wherever numpy is imported. Editable
installations of setuptools may add a relative entry, too: a folder of that name beside a plan would count as installed.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

from audits.own.libraries import guard_imports

SAFE = {"PYTHONSAFEPATH": "1"}
"""The variable by which Python puts neither the working folder nor a script's in front, in all processes below."""

SETTLED = f"{__name__}.settle_worker"
"""The function that Ray calls by its name in each new worker process."""

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds this project's packages."""

INSTALLED = ("site-packages", "dist-packages")


def leave_out_working_folder() -> None:
    """Take the working folder off this process's path, unless the user named it, or this project lies in it.

    So is every entry that is not absolute, since it is looked for in the working folder.
    """
    left_out = implied() - named_in_full() - {str(ROOT)}
    entries = (str(ROOT) if resolved(entry) == str(ROOT) else entry for entry in sys.path)
    sys.path[:] = [entry for entry in entries if os.path.isabs(entry) and resolved(entry) not in left_out]


def settle_worker() -> None:
    """Settle a process that Ray has started, before it takes any work: the interpreter may have added entries."""
    leave_out_working_folder()
    guard_imports()


def implied() -> set[str]:
    """Return the folders that are on the path only because of where this process was started."""
    relative = [entry for entry in entries_of_environment() if not os.path.isabs(entry)]
    return {resolved(entry) for entry in ("", *relative)}


def named_in_full() -> set[str]:
    """Return the folders that PYTHONPATH names by absolute paths: the user's own word."""
    return {resolved(entry) for entry in entries_of_environment() if os.path.isabs(entry)}


def entries_of_environment() -> list[str]:
    """Return the entries of PYTHONPATH, an empty one for an accidental colon at its end."""
    text = os.environ.get("PYTHONPATH", "")
    return text.split(os.pathsep) if text else []


def resolved(entry: str) -> str:
    """Return an entry of the path as an absolute path without links; "" is the working folder."""
    return os.path.realpath(entry)


def path_of_workers() -> list[str]:
    """Return what stands before the standard library on the path of this process, for processes that it starts.

    What comes behind it they find by themselves. Left out is the working folder, as ``leave_out_working_folder`` says.
    """
    library, left_out = resolved(sysconfig.get_path("stdlib")), implied() - named_in_full()
    installed = tuple(f"{resolved(prefix)}{os.sep}" for prefix in (sys.prefix, sys.base_prefix))
    found = []
    for entry in sys.path:
        if (place := resolved(entry)) == library:
            break
        if os.path.isdir(place) and place not in left_out and not place.startswith(installed):
            found.append(os.path.abspath(entry))
    if str(ROOT) in map(resolved, sys.path) and ROOT.name not in INSTALLED:
        found.append(str(ROOT))
    return list(dict.fromkeys(found))


class FromSource(SourceFileLoader):
    """Runs what stands in a source file, and no bytecode beside it, which may be of something that nobody has read."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source."""
        file = self.get_filename(fullname)
        return self.source_to_code(self.get_data(file), file)


class OwnFolders(MetaPathFinder):
    """Finds modules in the folders of users' own code, the latest first, once nothing else has found one.

    An entry at the end of ``sys.path`` would come before the packages there that have no ``__init__.py`` (``google``).
    A source file comes before a compiled one of its name, and before its bytecode.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.packages: set[str] = set()
        """The folders of packages that were found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module at the top lies; those in packages are found by these."""
        if path is not None:
            return None
        found = PathFinder.find_spec(fullname, self.folders, target)
        for place in (found.submodule_search_locations if found else None) or ():
            self.packages.add(place)
            sys.path_importer_cache.pop(place, None)
        return found

    def finder(self, path: str) -> FileFinder:
        """Return what finds modules in a folder of users' own code; raises ImportError for others, as hooks do."""
        below = (f"{each}{os.sep}" for each in self.packages)
        if path not in self.folders and not any(f"{path}{os.sep}".startswith(each) for each in below):
            raise ImportError(path)
        return FileFinder(path, (FromSource, SOURCE_SUFFIXES), (ExtensionFileLoader, EXTENSION_SUFFIXES))


LAST = OwnFolders()


def search_last(folder: Path) -> None:
    """Let modules be looked for in ``folder`` behind all other places, but before folders that were given earlier.

    So a file there never takes the place of a module that is installed, also of one that is imported later.
    """
    place = str(folder.resolve())
    LAST.folders[:] = [place, *(each for each in LAST.folders if each != place)]
    if LAST not in sys.meta_path:
        sys.meta_path.append(LAST)
        sys.path_hooks.insert(0, LAST.finder)
    sys.path_importer_cache.pop(place, None)
    importlib.invalidate_caches()


def search_for(top: str, folder: Path) -> None:
    """Let modules be looked for last in ``folder``, if the module ``top`` is found there and nowhere else.

    Permission for a module that lies elsewhere, a notebook's or script's own among them, is none for what a folder
    holds beside it.
    """
    if top == "__main__":
        return
    elsewhere = (finder.find_spec(top, None) for finder in sys.meta_path if finder is not LAST)
    if PathFinder.find_spec(top, [str(folder.resolve())]) is not None and not any(elsewhere):
        search_last(folder)


def searched_last(folder: Path) -> bool:
    """Return whether ``folder`` is the first of those where modules are looked for behind all other places."""
    return LAST.folders[:1] == [str(folder.resolve())] and LAST in sys.meta_path

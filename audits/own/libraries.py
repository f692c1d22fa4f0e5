"""Libraries and their settings: none is taken from the working folder, which may be somebody else's.

An empty entry in the search path of a library stands for the working folder, and some of those that torch loads when it
is imported have one; pyarrow looks for ``./libhdfs.so`` before all other places, Matplotlib for ``matplotlibrc``. What
lies there would run as code.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from audits.home import user_cache
from audits.owners import is_others, others_can_exchange
from audits.writing import make_folder

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

GUARDED = ("torch", "matplotlib")
"""Packages that look there when they are imported."""

SETTINGS = "matplotlibrc"
LIBRARY = ".so"
FOR_PROCESSORS = frozenset({"glibc-hwcaps", "tls", "haswell", "avx512_1", "xeon_phi", "atomics", platform.machine()})
"""Folders in which the loader looks for libraries of a kind of processor, beside those of a place of its path."""

COMPILED = "TORCHINDUCTOR_CACHE_DIR"

LOOKS_FOR_A_LIBRARY = ("hdfs", "viewfs")
"""Schemes of file systems for which pyarrow loads a library that it does not bring along."""


@contextlib.contextmanager
def working_folder_elsewhere() -> Iterator[None]:
    """Let the working folder of this process be ``/`` for a while: of all its threads, so keep it short.

    The folder is kept open meanwhile, so it may be moved, or be removed already. One that may not be searched stays
    the working folder: no library is found in it either.
    """
    try:
        before = os.open(".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        os.chdir("/")
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def tempts_libraries() -> bool:
    """Say whether a guarded package may take anything there: by its name, or where others may put it there any time."""
    try:
        if is_others(os.stat(".")):
            return True
        names = os.listdir(".")
    except OSError:
        return True
    return any(LIBRARY in name or name == SETTINGS or name in FOR_PROCESSORS for name in names)


def keep_compiled_code_apart() -> None:
    """Let torch keep what it compiles in a folder of this user: its own choice, a name in /tmp, others may take.

    It makes that folder when a model is first trained, and unpickles and loads what lies there.
    """
    cache = user_cache()
    if COMPILED not in os.environ and cache is not None:
        with contextlib.suppress(OSError):  # it may be one that cannot be written
            place = cache / "torchinductor"
            make_folder(place, private=True)
            if not others_can_exchange(place.resolve()):
                os.environ[COMPILED] = str(place)


def opened_elsewhere(uri: str) -> tuple[FileSystem, str]:
    """Return pyarrow's file system and the path on it; raises what pyarrow does."""
    from pyarrow import fs

    looks = uri.partition(":")[0].lower() in LOOKS_FOR_A_LIBRARY
    with working_folder_elsewhere() if looks else contextlib.nullcontext():
        found: tuple[FileSystem, str] = fs.FileSystem.from_uri(uri)
    return found


class GuardedImports(MetaPathFinder):
    """Finds ``GUARDED`` packages where they are, and lets each be run with the working folder elsewhere.

    The lock that Python has for each module while it is imported makes other threads wait that import the same one.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders say of a guarded package, None for all other modules."""
        if fullname not in GUARDED:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((spec for finder in others if (spec := finder.find_spec(fullname, path, target))), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def guarded(module: ModuleType) -> None:
                keep_compiled_code_apart()
                # Other threads may be using relative paths, so nothing is moved where nothing tempts.
                with working_folder_elsewhere() if tempts_libraries() else contextlib.nullcontext():
                    execute(module)

            setattr(spec.loader, "exec_module", guarded)  # noqa: B010  # mypy lets no method be assigned
        return spec


FIRST = GuardedImports()


def guard_imports() -> None:
    """Let ``GUARDED`` packages be imported so from now on; none is imported here."""
    if FIRST not in sys.meta_path:
        sys.meta_path.insert(0, FIRST)

"""Files below a folder, reached by descriptors alone: no link on the way is followed, so nothing outside is touched."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from audits.writing import make_folder
from orchestrator.engine.store.paths import leads_out, require_inside

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe keeps nobody waiting


class Rooted:
    """The folder ``root``, which may be a link itself, and what lies below it.

    Paths are relative to it. Every method raises StoreRefused for a path that leads out, and where a link, a pipe or a
    device lies in the place of a file or a folder; OSErrors pass as they are.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Yield a descriptor of the folder at ``path``."""
        parts = require_inside(path).split("/") if path else []
        handle = os.open(self.root, _FOLDER)
        try:
            for depth, name in enumerate(parts, start=1):
                self.require_no_link(handle, name, "/".join(parts[:depth]))
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def make_folder(self, path: str) -> None:
        """Make the folder at ``path``, and those on the way; one that is there stays as it is."""
        parts = require_inside(path).split("/")
        for depth in range(1, len(parts) + 1):
            inner = "/".join(parts[:depth])
            with self.parent(inner):
                make_folder(Path(self.root, inner), below=Path(self.root))

    @contextmanager
    def parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder in which ``path`` lies, and its name there; it is no link."""
        above, _, name = require_inside(path).rpartition("/")
        with self.folder(above) as handle:
            self.require_no_link(handle, name, path)
            yield handle, name

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""
        with self.parent(path) as (folder, name):
            handle = os.open(name, _FILE, dir_fd=folder)
            with open(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise leads_out(self.root, path, "a folder, a pipe or a device in place of a file")
                return file.read()

    def is_file(self, path: str) -> bool:
        """Say whether there is a file at ``path``."""
        try:
            with self.parent(path) as (folder, name):
                return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def subfolders(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the name of each folder in that at ``path`` and a descriptor of the latter; hidden ones are left out.

        Nothing is yielded where there is no folder at ``path``.
        """
        with suppress(FileNotFoundError), self.folder(path) as handle, os.scandir(handle) as items:
            for item in items:
                if item.name.startswith("."):
                    continue
                if item.is_symlink() and item.is_dir():
                    raise leads_out(self.root, f"{path}/{item.name}".lstrip("/"), "a link")
                if item.is_dir(follow_symlinks=False):
                    yield item.name, handle

    def files(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield path and status of every file below the folder at ``path``; links count as files, and lead nowhere."""
        with suppress(FileNotFoundError), self.folder(path) as top:
            for at, _, names, handle in os.fwalk(".", dir_fd=top):
                for name in names:
                    with suppress(FileNotFoundError):  # renamed or removed by somebody else meanwhile
                        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                        yield os.path.normpath(os.path.join(path, at, name)), status

    def require_no_link(self, folder: int, name: str, path: str) -> None:
        """Refuse a link called ``name`` in ``folder``; what is not there is none."""
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise leads_out(self.root, path, "a link")

"""Files below a folder, reached by descriptors alone, and none that somebody else could have put there.

No link on the way is followed, so nothing outside is touched. What belongs to another user than this one and root, or
can be changed by others, is refused (as git refuses repositories of others, ``safe.directory``).
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from audits.owners import others_bits
from audits.writing import make_folder
from orchestrator.engine.store.faults import StoreRefused
from orchestrator.engine.store.paths import leads_out, require_inside
from orchestrator.engine.store.trust import ALLOW

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe keeps nobody waiting


class Rooted:
    """The folder ``root``, which may be a link itself, and what lies below it.

    Paths are relative to it. Every method raises StoreRefused for a path that leads out, where a link, a pipe or a
    device lies in the place of a file or a folder, and, unless ``allowed``, for files and folders of others; OSErrors
    pass as they are.
    """

    def __init__(self, root: str, *, allowed: bool = False) -> None:
        self.root = root
        self.allowed = allowed
        self.entered_by_others = True

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Yield a descriptor of the folder at ``path``."""
        parts = require_inside(path).split("/") if path else []
        handle = os.open(self.root, _FOLDER)
        try:
            self.entered_by_others = others_can_enter(os.fstat(handle))
            self.require_own(handle, "")
            for depth, name in enumerate(parts, start=1):
                self.require_no_link(handle, name, "/".join(parts[:depth]))
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
                self.require_own(handle, "/".join(parts[:depth]))
            yield handle
        finally:
            os.close(handle)

    def make_folder(self, path: str) -> None:
        """Make the folder at ``path``, and those on the way; one that is there stays as it is.

        Unless ``allowed`` others cannot write into it, whatever the umask: it would be refused.
        """
        parts = require_inside(path).split("/")
        for depth in range(1, len(parts) + 1):
            inner = "/".join(parts[:depth])
            with self.parent(inner):
                make_folder(Path(self.root, inner), below=Path(self.root), shared=self.allowed)

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
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise leads_out(self.root, path, "a folder, a pipe or a device in place of a file")
                self.require_own(handle, path)
                with open(handle, "rb", closefd=False) as file:
                    return file.read()
            finally:
                os.close(handle)

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

    def require_own(self, handle: int, path: str) -> None:
        """Refuse what another user than this one or root owns, and what others can write.

        Modes count for nothing in a store that nobody else can enter.
        """
        if self.allowed:
            return
        found, what = os.fstat(handle), f"{path} in it" if path else "it"
        if found.st_uid not in (os.geteuid(), 0):
            raise StoreRefused(
                f"store {self.root}: {what} belongs to {user_name(found.st_uid)}, who could have put any result there; "
                f"use a store of your own (--store), or, if you trust them, set {ALLOW}={self.root}"
            )
        if found.st_mode & others_bits(found, stat.S_IWGRP, stat.S_IWOTH) and (self.entered_by_others or not path):
            raise StoreRefused(
                f"store {self.root}: others can write into {what} (mode {stat.S_IMODE(found.st_mode):o}), and so could "
                f"have put any result there; run chmod go-rwx {self.root}, or, if you trust them, set "
                f"{ALLOW}={self.root}"
            )


def others_can_enter(found: os.stat_result) -> bool:
    """Say whether another user than the owner of a folder can reach what lies in it."""
    return bool(found.st_mode & others_bits(found, stat.S_IXGRP, stat.S_IXOTH))


def user_name(uid: int) -> str:
    """Return a user's name for messages, or the number of one that has none here."""
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user {uid}"

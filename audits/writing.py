"""The one way in which files come into a folder: whole, by a new name first, and through no link.

A folder may have been made by somebody else. The links in it, pipes, and files that go by a second name elsewhere are
not the user's word: what is written replaces a link and never follows it. The folder that the user names may be a link.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedRandom

TEMPORARY = ".tmp-"
"""Start of the name of whatever is not finished."""
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Permissions of what names people; all else has those of the process (umask)."""
REFUSED = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO
)  # fmt: skip
"""Error numbers of a place that cannot be written as it is."""
INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class CannotWrite(OSError):
    """A place that cannot be written as it is: one line that names it and says what to do (exit code 2)."""

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror}; remove what is in the way, or give another place"


def write_whole(
    file: Path, data: bytes, *, below: Path | None = None, private: bool = False, durable: bool = False
) -> None:
    """Write ``file`` whole, or leave what is there as it is; see ``write_together``."""
    write_together(file.parent, {file.name: data}, below=below, private=private, durable=durable)


def write_together(
    folder: Path,
    files: Mapping[str, bytes],
    *,
    below: Path | None = None,
    private: bool = False,
    shared: bool = True,
    durable: bool = False,
) -> None:
    """Write ``files`` (name → content) into ``folder``, each whole or not at all, the last one last.

    ``below``: a folder that the user has named, above ``folder``; no link leads from it to ``folder``. Without it
    ``folder`` is named by the user itself. ``private``: for the owner alone. ``shared``: others may change it if the
    umask says so. ``durable``: on the disk before any has its name. Raises CannotWrite where there is a folder, a pipe
    or a device in place of a file, where a folder is a link or none, and where the user may not write; other OSErrors,
    such as that of a full disk, as they are.
    """
    with ExitStack() as stack:
        handle = stack.enter_context(opened_folder(folder, below))
        parts: dict[str, str] = {}
        try:
            for name, data in files.items():
                with _refusing(folder / name):
                    _require_file(handle, name)
                    parts[name] = _new_name()
                    _write(handle, parts[name], data, PRIVATE_FILE if private else 0o666 if shared else 0o644, durable)
            for name in files:
                with _refusing(folder / name):
                    os.replace(parts[name], name, src_dir_fd=handle, dst_dir_fd=handle)
                del parts[name]
        finally:
            for part in parts.values():
                with suppress(OSError):
                    os.unlink(part, dir_fd=handle)


@contextmanager
def replacing(file: Path) -> Iterator[BufferedRandom]:
    """Open a new file, to write and to read, that takes the place of ``file`` when the block ends well.

    It is on the disk by then. Raises as ``write_together``.
    """
    part = _new_name()
    with opened_folder(file.parent) as handle:
        try:
            with _refusing(file):
                _require_file(handle, file.name)
                descriptor = _opened_new(handle, part, 0o666)
            with open(descriptor, "w+b") as stream:
                yield stream
                stream.flush()
                os.fsync(descriptor)
            with _refusing(file):
                os.replace(part, file.name, src_dir_fd=handle, dst_dir_fd=handle)
        finally:
            with suppress(OSError):
                os.unlink(part, dir_fd=handle)


@contextmanager
def opened_folder(folder: Path, below: Path | None = None) -> Iterator[int]:
    """Yield a descriptor of ``folder``, to which no link leads from ``below``; raises CannotWrite where one does."""
    with _refusing(folder):
        handle = os.open(below or folder, INTO)
    try:
        steps = folder.relative_to(below).parts if below is not None else ()
        for place, step in enumerate(steps, start=1):
            at = Path(below or "", *steps[:place])
            with _refusing(at):
                inner = _opened_inner(handle, step)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def make_folder(folder: Path, *, below: Path | None = None, private: bool = False, shared: bool = True) -> None:
    """Make ``folder`` and, without ``below``, those above it; one that is there stays as it is.

    ``below`` as in ``write_together``: the folder right above; ``private``, ``shared``: as there. Raises CannotWrite
    for what is there and no folder.
    """
    mode = PRIVATE_FOLDER if private else 0o777 if shared else 0o755
    if below is None:
        try:
            with _refusing(folder):
                folder.mkdir(mode, parents=True, exist_ok=True)
        except FileExistsError:
            if not os.path.lexists(folder) or folder.is_dir():  # removed, or made, meanwhile
                raise
            raise CannotWrite(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
        return
    with opened_folder(folder.parent, below) as handle, _refusing(folder):
        with suppress(FileExistsError):
            os.mkdir(folder.name, mode, dir_fd=handle)
        os.close(_opened_inner(handle, folder.name))


def opened_to_append(file: Path) -> int:
    """Return a descriptor by which a file, made if need be, is appended to; raises CannotWrite for no file of its own.

    Such are a link, a file with a second name, a pipe and a device.
    """
    with _refusing(file):
        return _opened_own(file, os.O_WRONLY | os.O_APPEND)


def opened_to_lock(file: Path) -> int:
    """Return a descriptor of a file of this user's, made if need be, that serves as a lock; its content stays."""
    with _refusing(file):
        return _opened_own(file, os.O_RDWR, PRIVATE_FILE)


def require_own(file: Path) -> None:
    """Raise CannotWrite where there is anything but a file with one name, which others write (a data base)."""
    with suppress(FileNotFoundError), _refusing(file):
        _require_single(file.lstat())


def require_no_link(folder: Path) -> None:
    """Raise CannotWrite where there is anything but a folder, into which others write."""
    with suppress(FileNotFoundError), _refusing(folder):
        _require_folder(folder.lstat())


def _new_name() -> str:
    return f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"


def _opened_new(folder: int, name: str, mode: int) -> int:
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=folder)


def _write(folder: int, name: str, data: bytes, mode: int, durable: bool) -> None:
    handle = _opened_new(folder, name, mode)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def _opened_inner(folder: int, name: str) -> int:
    """Open a folder in ``folder`` that is no link."""
    _require_name(name)
    _require_folder(os.stat(name, dir_fd=folder, follow_symlinks=False))
    return os.open(name, INTO | os.O_NOFOLLOW, dir_fd=folder)


def _opened_own(file: Path, flags: int, mode: int = 0o666) -> int:
    with suppress(FileNotFoundError):
        _require_single(file.lstat())
    # a pipe that was put there meanwhile does not hang
    handle = os.open(file, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:
        _require_single(os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def _require_name(name: str) -> None:
    if name in ("", os.curdir, os.pardir) or "/" in name:
        raise OSError(errno.EISDIR, "that is no name of a file")


def _require_file(folder: int, name: str) -> None:
    """Refuse what a file cannot replace; a link is replaced."""
    _require_name(name)
    with suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            _require_regular(found)


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a link, and none is followed there")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.ENXIO, "it is a pipe or a device, no file")


def _require_single(found: os.stat_result) -> None:
    _require_regular(found)
    if found.st_nlink > 1:
        raise OSError(errno.EPERM, "it is a hard link: the same file has another name elsewhere")


def _require_folder(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a link, and none is followed there")
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.ENOTDIR, "it is no folder")


@contextmanager
def _refusing(place: Path) -> Iterator[None]:
    """Name ``place`` in the error of one that cannot be written as it is."""
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        if error.errno in REFUSED:
            raise CannotWrite(error.errno, error.strerror or type(error).__name__, str(place)) from None
        raise

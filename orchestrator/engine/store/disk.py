"""Where the bytes of a store lie: a folder on a disk, or any file system that pyarrow opens from a URI.

Both kinds promise one thing: a file is seen whole or not at all, and of several files published together the last
one is seen last.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from audits.writing import TEMPORARY, make_folder, write_together
from orchestrator.engine.store.faults import FULL, StoreFull, StoreUnusable, one_line
from orchestrator.engine.store.storage import Entry

_ATTEMPTS = 50  # each claim that is given back may remove the folder below those who write theirs


class Disk:
    """A folder on a disk: temporary name, fsync, rename; made for its owner alone where it is not there yet."""

    def __init__(self, root: str) -> None:
        self.place = self.root = root

    def read(self, path: str) -> bytes:
        with self._one_line_errors("read"), open(self._at(path), "rb") as file:
            return file.read()

    def publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        with self._one_line_errors("written"):
            if not os.path.isdir(self.root):
                make_folder(Path(self.root), private=True)
            for attempt in range(_ATTEMPTS):
                try:
                    return self._publish(self._at(folder), files)
                # the folder was emptied and removed meanwhile, perhaps between the two steps of makedirs: make it again
                except (FileNotFoundError, FileExistsError):
                    if attempt == _ATTEMPTS - 1:
                        raise

    def _publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        make_folder(Path(folder))
        try:
            write_together(Path(folder), files, durable=True)
        except BaseException:
            self._remove_empty(folder)
            raise

    def exists(self, path: str) -> bool:
        return os.path.isfile(self._at(path))

    def folders_with(self, folder: str, name: str) -> set[str]:
        found = set()
        with self._one_line_errors("read"):
            for shelf in _subfolders(self._at(folder)):
                found |= {item.name for item in _subfolders(shelf.path) if os.path.exists(f"{item.path}/{name}")}
        return found

    def folders(self) -> list[str]:
        with self._one_line_errors("read"):
            return sorted(item.name for item in _subfolders(self.root))

    def walk(self, folder: str) -> Iterator[Entry]:
        with self._one_line_errors("read"):
            for at, _, names in os.walk(self._at(folder)):
                for name in names:
                    path = os.path.join(at, name)
                    with contextlib.suppress(FileNotFoundError):  # renamed or removed by somebody else meanwhile
                        status = os.stat(path)
                        yield Entry(os.path.relpath(path, self.root), status.st_size, status.st_mtime)

    def remove_file(self, path: str) -> None:
        with self._one_line_errors("written"), contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(path))
        self._remove_empty(os.path.dirname(self._at(path)))

    def remove_folder(self, path: str, last: str) -> None:
        folder = self._at(path)
        aside = os.path.join(os.path.dirname(folder), f"{TEMPORARY}{secrets.token_hex(6)}-{os.path.basename(folder)}")
        with self._one_line_errors("written"), contextlib.suppress(FileNotFoundError):
            os.rename(folder, aside)  # one step: no reader and no writer ever sees half of it
            shutil.rmtree(aside)
        self._remove_empty(os.path.dirname(folder))

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path)

    def _remove_empty(self, folder: str) -> None:
        while folder != self.root and folder.startswith(self.root):
            try:
                os.rmdir(folder)
            except OSError:  # not empty, or gone already
                return
            folder = os.path.dirname(folder)

    @contextlib.contextmanager
    def _one_line_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in FULL:
                raise StoreFull(
                    f"disk full: the store {self.place} cannot be written ({one_line(error)}); nothing finished is "
                    "lost; free space and run the same command again"
                ) from error
            if doing == "read" and isinstance(error, FileNotFoundError):
                raise
            raise StoreUnusable(
                f"store {self.place} cannot be {doing}: {one_line(error)}; choose a place that you can write "
                "(--store, ORCH_STORE or compute.store)"
            ) from error


def _subfolders(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            yield from (item for item in items if item.is_dir() and not item.name.startswith("."))
    except FileNotFoundError:
        return

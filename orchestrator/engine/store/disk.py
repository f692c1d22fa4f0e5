"""The bytes of a store: in a folder on a disk, or on any file system that pyarrow opens from a URI.

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
from orchestrator.engine.store.paths import require_inside
from orchestrator.engine.store.rooted import Rooted
from orchestrator.engine.store.storage import Entry

_ATTEMPTS = 50  # each claim that is given back may remove the folder below those who write theirs


class Disk:
    """A folder on a disk: temporary name, fsync, rename; made for its owner alone where it is not there yet.

    The folder may be a link; below it none is followed. ``allowed``: others may own it or write into it (``Rooted``).
    """

    def __init__(self, root: str, *, allowed: bool = False) -> None:
        self.place = self.root = root
        self.below = Rooted(root, allowed=allowed)

    def read(self, path: str) -> bytes:
        with self._one_line_errors("read"):
            return self.below.read(path)

    def publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        with self._one_line_errors("written"):
            if not os.path.isdir(self.root):
                make_folder(Path(self.root), private=True)
            for attempt in range(_ATTEMPTS):
                try:
                    return self._publish(folder, files)
                # the folder was emptied and removed meanwhile: make it again
                except FileNotFoundError:
                    if attempt == _ATTEMPTS - 1:
                        raise

    def _publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        self.below.make_folder(folder)
        try:
            root = Path(self.root)
            write_together(root / folder, files, below=root, shared=self.below.allowed, durable=True)
        except BaseException:
            self._remove_empty(folder)
            raise

    def exists(self, path: str) -> bool:
        with self._one_line_errors("read"):
            return self.below.is_file(path)

    def folders_with(self, folder: str, name: str) -> set[str]:
        found = set()
        with self._one_line_errors("read"):
            for shelf, _ in self.below.subfolders(folder):
                for item, handle in self.below.subfolders(f"{folder}/{shelf}"):
                    with contextlib.suppress(FileNotFoundError):
                        os.stat(f"{item}/{name}", dir_fd=handle, follow_symlinks=False)
                        found.add(item)
        return found

    def folders(self) -> list[str]:
        with self._one_line_errors("read"):
            return sorted(name for name, _ in self.below.subfolders(""))

    def walk(self, folder: str) -> Iterator[Entry]:
        with self._one_line_errors("read"):
            for path, status in self.below.files(folder):
                yield Entry(path, status.st_size, status.st_mtime)

    def remove_file(self, path: str) -> None:
        above, _, name = require_inside(path).rpartition("/")
        with (
            self._one_line_errors("written"),
            contextlib.suppress(FileNotFoundError),
            self.below.folder(above) as handle,
        ):
            os.unlink(name, dir_fd=handle)  # of a link the link itself
        self._remove_empty(above)

    def remove_folder(self, path: str, last: str) -> None:
        with (
            self._one_line_errors("written"),
            contextlib.suppress(FileNotFoundError),
            self.below.parent(path) as (handle, name),
        ):
            aside = f"{TEMPORARY}{secrets.token_hex(6)}-{name}"
            # one step: no reader and no writer ever sees half of it
            os.rename(name, aside, src_dir_fd=handle, dst_dir_fd=handle)
            shutil.rmtree(aside, dir_fd=handle)
        self._remove_empty(os.path.dirname(path))

    def _remove_empty(self, folder: str) -> None:
        while folder:
            try:
                with self.below.parent(folder) as (handle, name):
                    os.rmdir(name, dir_fd=handle)
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

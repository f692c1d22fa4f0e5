"""A store on a file system that pyarrow opens from a URI: s3://, gs://, abfs://, hdfs://."""

from __future__ import annotations

import contextlib
import posixpath
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from audits.credentials import reveal
from orchestrator.engine.store.faults import StoreUnusable, one_line
from orchestrator.engine.store.storage import TEMPORARY, Entry

if TYPE_CHECKING:
    from pyarrow import fs

_SINGLE_PUTS = "allow_delayed_open=true"
_WRITES_ARE_ATOMIC = ("s3", "gcs", "abfs")


class ObjectStorage:
    """Files behind a URI. On object stores one PUT is atomic; elsewhere a file is written aside and moved."""

    def __init__(self, uri: str) -> None:
        import pyarrow as pa
        from pyarrow import fs

        parts = urlsplit(uri)
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        try:
            self._files, root = fs.FileSystem.from_uri(_with_single_puts(reveal(uri)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise StoreUnusable(
                f"store {self.place} cannot be opened: {one_line(error)}; give a local path or a URI such as "
                "s3://bucket/folder"
            ) from error
        self._root = root.rstrip("/")

    def read(self, path: str) -> bytes:
        with self._one_line_errors("read"), self._files.open_input_stream(self._at(path)) as file:
            return bytes(file.read())

    def publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        with self._one_line_errors("written"):
            for name, data in files.items():
                path = self._at(f"{folder}/{name}")
                if self._files.type_name in _WRITES_ARE_ATOMIC:
                    self._put(path, data)
                else:
                    aside = self._at(f"{folder}/{TEMPORARY}{secrets.token_hex(6)}-{name}")
                    self._files.create_dir(posixpath.dirname(path), recursive=True)
                    self._put(aside, data)
                    self._files.move(aside, path)

    def _put(self, path: str, data: bytes) -> None:
        with self._files.open_output_stream(path, compression=None) as file:
            file.write(data)

    def exists(self, path: str) -> bool:
        from pyarrow import fs

        with self._one_line_errors("read"):
            return bool(self._files.get_file_info(self._at(path)).type == fs.FileType.File)

    def folders_with(self, folder: str, name: str) -> set[str]:
        found = (entry.path.split("/") for entry in self.walk(folder))
        return {parts[-2] for parts in found if parts[-1] == name and len(parts) == len(folder.split("/")) + 3}

    def folders(self) -> list[str]:
        from pyarrow import fs

        return sorted(i.base_name for i in self._select("", recursive=False) if i.type == fs.FileType.Directory)

    def walk(self, folder: str) -> Iterator[Entry]:
        from pyarrow import fs

        for info in self._select(folder, recursive=True):
            if info.type == fs.FileType.File:
                modified = info.mtime.timestamp() if info.mtime else 0.0
                yield Entry(info.path.removeprefix(f"{self._root}/"), info.size or 0, modified)

    def remove_file(self, path: str) -> None:
        with self._one_line_errors("written"), contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._at(path))

    def remove_folder(self, path: str, last: str) -> None:
        self.remove_file(f"{path}/{last}")
        with self._one_line_errors("written"), contextlib.suppress(FileNotFoundError):
            self._files.delete_dir(self._at(path))

    def _select(self, folder: str, *, recursive: bool) -> list[fs.FileInfo]:
        from pyarrow import fs

        with self._one_line_errors("read"):
            selector = fs.FileSelector(self._at(folder), recursive=recursive, allow_not_found=True)
            return list(self._files.get_file_info(selector))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")

    @contextlib.contextmanager
    def _one_line_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if doing == "read":
                raise
            raise self._unusable(doing, error) from error
        except OSError as error:
            raise self._unusable(doing, error) from error

    def _unusable(self, doing: str, error: OSError) -> StoreUnusable:
        return StoreUnusable(
            f"store {self.place} cannot be {doing}: {one_line(error)}; check bucket, credentials and network"
        )


def _with_single_puts(uri: str) -> str:
    """Return ``uri`` with the option that makes pyarrow store a small S3 object by one request instead of three."""
    parts = urlsplit(uri)
    if parts.scheme != "s3" or "allow_delayed_open" in parts.query:
        return uri
    return parts._replace(query=f"{parts.query}&{_SINGLE_PUTS}".lstrip("&")).geturl()

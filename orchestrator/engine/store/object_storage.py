"""A store on a file system that pyarrow opens from a URI: s3://, gs://, abfs://, hdfs://."""

from __future__ import annotations

import contextlib
import posixpath
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from audits.credentials import reveal
from audits.own.libraries import opened_elsewhere
from audits.writing import TEMPORARY
from orchestrator.engine.store.faults import StoreUnusable, one_line
from orchestrator.engine.store.paths import require_inside
from orchestrator.engine.store.patience import LIMIT, Patience, cause
from orchestrator.engine.store.storage import Entry

if TYPE_CHECKING:
    from pyarrow import fs

R = TypeVar("R")

_WRITES_ARE_ATOMIC = ("s3", "gcs", "abfs")
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 15.0
_MANY_SHELVES = 128  # of 256: a stage so full is listed shelf by shelf, each page by page
_LISTINGS_AT_ONCE = 16
_OPTIONS = {"s3": "allow_delayed_open=true", "gs": "retry_limit_seconds=5", "gcs": "retry_limit_seconds=5"}
"""By scheme: S3 stores a small object by one request instead of three; one request to GCS does not last for minutes."""
_IN_URIS_ONLY = ("tls_ca_dir_path", "tls_verify_certificates")  # what the constructor of pyarrow's S3 cannot be told


class ObjectStorage:
    """Files behind a URI. On object stores one PUT is atomic; elsewhere a file is written aside and moved."""

    def __init__(self, uri: str, patience: float = LIMIT) -> None:
        import pyarrow as pa

        parts = urlsplit(uri)
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.patience = Patience(self.place, patience)
        try:
            self._files, root = self.patience.ask(lambda: _open(reveal(uri)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise StoreUnusable(
                f"store {self.place} cannot be opened: {one_line(error)}; give a local path or a URI such as "
                "s3://bucket/folder"
            ) from error
        self._root = root.rstrip("/")

    def read(self, path: str) -> bytes:
        def request() -> bytes:
            with self._files.open_input_stream(self._at(path), compression=None) as file:
                return bytes(file.read())

        return self._ask("read", request)

    def publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self._ask("written", lambda name=name, data=data: self._write(folder, name, data))  # type: ignore[misc]

    def _write(self, folder: str, name: str, data: bytes) -> None:
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

        return self._ask("read", lambda: bool(self._files.get_file_info(self._at(path)).type == fs.FileType.File))

    def folders_with(self, folder: str, name: str) -> set[str]:
        from pyarrow import fs

        shelves = [i.path for i in self._select(self._at(folder), recursive=False) if i.type == fs.FileType.Directory]
        places = shelves if len(shelves) >= _MANY_SHELVES else [self._at(folder)]
        depth = len(self._at(folder).split("/")) + 3
        found = set()
        with ThreadPoolExecutor(_LISTINGS_AT_ONCE) as pool:
            for listing in pool.map(lambda place: self._select(place, recursive=True), places):
                parts = (info.path.split("/") for info in listing if info.type == fs.FileType.File)
                found |= {part[-2] for part in parts if part[-1] == name and len(part) == depth}
        return found

    def folders(self) -> list[str]:
        from pyarrow import fs

        return sorted(
            i.base_name for i in self._select(self._at(""), recursive=False) if i.type == fs.FileType.Directory
        )

    def walk(self, folder: str) -> Iterator[Entry]:
        from pyarrow import fs

        for info in self._select(self._at(folder), recursive=True):
            if info.type == fs.FileType.File:
                modified = info.mtime.timestamp() if info.mtime else 0.0
                yield Entry(info.path.removeprefix(f"{self._root}/"), info.size or 0, modified)

    def remove_file(self, path: str) -> None:
        self._remove(lambda: self._files.delete_file(self._at(path)))

    def remove_folder(self, path: str, last: str) -> None:
        self.remove_file(f"{path}/{last}")
        self._remove(lambda: self._files.delete_dir(self._at(path)))

    def _remove(self, request: Callable[[], None]) -> None:
        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                request()

        self._ask("written", remove)

    def _select(self, place: str, *, recursive: bool) -> list[fs.FileInfo]:
        from pyarrow import fs

        selector = fs.FileSelector(place, recursive=recursive, allow_not_found=True)
        return self._ask("read", lambda: list(self._files.get_file_info(selector)))

    def _at(self, path: str) -> str:
        return f"{self._root}/{require_inside(path)}".rstrip("/")

    def _ask(self, doing: str, request: Callable[[], R]) -> R:
        try:
            return self.patience.ask(request)
        except FileNotFoundError as error:
            if doing == "read":
                raise
            raise self._unusable(doing, error) from error
        except OSError as error:
            raise self._unusable(doing, error) from error

    def _unusable(self, doing: str, error: OSError) -> StoreUnusable:
        return StoreUnusable(
            f"store {self.place} cannot be {doing}: {cause(error)}; check bucket, credentials and network"
        )


def _open(uri: str) -> tuple[Any, str]:
    """Return pyarrow's file system and the path of the root; a request of it is one attempt and lasts for seconds."""
    from pyarrow import fs

    files, root = opened_elsewhere(_with_options(uri))
    if isinstance(files, fs.S3FileSystem) and not any(name in urlsplit(uri).query for name in _IN_URIS_ONLY):
        make, (options,) = files.__reduce__()
        options |= {"connect_timeout": _CONNECT_SECONDS, "request_timeout": _ANSWER_SECONDS}
        files = make({**options, "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=1)})
    return files, root


def _with_options(uri: str) -> str:
    """Return ``uri`` with the option of its scheme, unless it says something about it itself."""
    parts = urlsplit(uri)
    option = _OPTIONS.get(parts.scheme)
    if option is None or option.partition("=")[0] in parts.query:
        return uri
    return parts._replace(query=f"{parts.query}&{option}".lstrip("&")).geturl()

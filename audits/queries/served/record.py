"""Answers of a served model in Parquet files, found again by the input: asked once, replayed at any time.

A record is a folder with one folder for each endpoint, named after the hash of what its answers depend on: in it
``endpoint.json`` and files of ``key`` (16 bytes, the hash of an input) and ``answer`` (the server's JSON). A file is
written under a temporary name, made durable and renamed, a batch a file; a writer joins its own small files now and
then. So several processes may write at once, and a kill loses the batch in flight at most.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from audits.data.bounded import table_within
from audits.data.regular import NotRegular, content_of
from audits.errors import BadInput
from audits.plain_json import from_json
from audits.queries.served.record_folder import ABOUT, VERSION, about_in, folder_of, parts_in
from audits.writing import make_folder, write_whole

SCHEMA = pa.schema([("key", pa.binary(16)), ("answer", pa.string())])
JOINED = 64
"""Small files of one writer that are joined to one."""


def identity(described: Mapping[str, Any]) -> str:
    """Return the name of an endpoint's folder: a hash of ``Endpoint.described``."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


class Record:
    """The answers of one endpoint in ``folder``, held in memory by key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[bytes, str] = {}
        self._read: set[str] = set()
        self._own: list[tuple[str, pa.Table]] = []

    @classmethod
    def open(cls, root: str | os.PathLike[str], endpoint: Mapping[str, Any], reading: Mapping[str, Any]) -> Record:
        """Return the record of an endpoint in ``root``, which is made if need be, and note how it is read."""
        folder = Path(root) / identity(endpoint)
        about = {"version": VERSION, "endpoint": endpoint, "reading": reading}
        text = json.dumps(about, indent=1, ensure_ascii=False).encode()
        record = cls(folder)
        try:
            make_folder(Path(root), private=True)
            make_folder(folder, below=Path(root), private=True)
            if not (folder / ABOUT).is_file() or record.about() != from_json(text):
                write_whole(folder / ABOUT, text, below=Path(root), durable=True)
        except OSError as error:
            raise cannot("written", folder, error) from error
        record.refresh()
        return record

    def refresh(self) -> None:
        """Read what was recorded since, by this process or others."""
        try:
            for _ in range(100):  # a writer may join its files between the listing and the reading
                parts = parts_in(self.folder)
                with contextlib.suppress(FileNotFoundError):
                    for part in parts:
                        if part.name not in self._read:
                            self._learn(read_part(part))
                            self._read.add(part.name)
                    break
        except OSError as error:
            raise cannot("read", self.folder, error) from error

    def _learn(self, table: pa.Table) -> None:
        for key, answer in zip(table["key"].to_pylist(), table["answer"].to_pylist(), strict=True):
            self._known.setdefault(key, sys.intern(answer) if len(answer) < 32 else answer)

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Return those of ``keys`` that have no answer, each once, in order."""
        return [key for key in dict.fromkeys(keys) if key not in self._known]

    def keys(self) -> list[bytes]:
        """Return the keys of all inputs that have an answer."""
        return list(self._known)

    def answers(self, keys: Iterable[bytes]) -> list[Any]:
        """Return the recorded answers."""
        return [from_json(self._known[key]) for key in keys]

    def add(self, keys: Sequence[bytes], answers: Sequence[Any]) -> None:
        """Record the answers of one batch; they are on the disk when this returns."""
        table = pa.table([pa.array(keys, pa.binary(16)), [json.dumps(answer) for answer in answers]], SCHEMA)
        self._own.append((self._write("batch", table), table))
        self._learn(table)
        if len(self._own) == JOINED:
            self._write("joined", pa.concat_tables([part for _, part in self._own]))
            for name, _ in self._own:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.folder / name)
            self._own = []

    def _write(self, word: str, table: pa.Table) -> str:
        name = f"{word}-{time.time_ns()}-{secrets.token_hex(6)}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        try:
            write_whole(self.folder / name, sink.getvalue(), below=self.folder.parent, durable=True)
        except OSError as error:
            raise cannot("written", self.folder, error) from error
        self._read.add(name)
        return name

    def about(self) -> dict[str, Any]:
        """Return ``endpoint.json``: the endpoint, and how its answers were read last."""
        return about_in(self.folder)


def recorded(path: str | os.PathLike[str]) -> Record:
    """Return the record in ``path``, with its answers."""
    record = Record(folder_of(Path(path)))
    record.refresh()
    return record


def read_part(file: Path) -> pa.Table:
    """Return the table in a file of a record; raises BadInput for a damaged one."""
    try:
        data = content_of(file)
    except NotRegular as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; give the folder of a record") from error
    try:
        table = table_within(data, str(file))
    except pa.ArrowException as error:
        table = error
    if not isinstance(table, pa.Table) or table.schema.remove_metadata() != SCHEMA:
        raise BadInput(f"{file} is damaged, or no part of a record; remove it, and what it held is asked again")
    return table


def cannot(doing: str, folder: Path, error: OSError) -> OSError | BadInput:
    """Return what an error of the disk means: a full disk stays what it is, all else is a wrong place."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error
    return BadInput(f"the record {str(folder)!r} cannot be {doing}: {error.strerror or error}; choose another folder")

"""Search all that a run leaves for a secret: bytes of files, cells of tables, rows of databases."""

from __future__ import annotations

import base64
import gzip
import io
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq


def encodings(secret: str) -> list[bytes]:
    """Return the secret as it is, percent-encoded, in hex, and the middle of its base64 wherever it begins."""
    raw = secret.encode()
    middles = (base64.b64encode(b"\0" * shift + raw)[-(-shift * 4 // 3) + 1 : -4] for shift in range(3))
    quoted = {quote(secret, safe=safe).encode() for safe in ("", "/", "+", "/+")}
    return [raw, *quoted, raw.hex().encode(), *middles]


def found_in(contents: Mapping[str, bytes], secrets: Mapping[str, str]) -> list[str]:
    """Return "place: secret" for every secret (name → value) in every place."""
    wanted = {name: encodings(value) for name, value in secrets.items()}
    return [
        f"{place}: {name}"
        for place, content in contents.items()
        for text in [b"\n".join(readings(content))]
        for name, some in wanted.items()
        if any(one in text for one in some)
    ]


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below ``folder``, their names among them, by path; databases with their rows."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_file():
            content = path.read_bytes() if path.is_file() else b""
            rows = b"\n".join(rows_of(path)) if content.startswith(b"SQLite format 3\0") else b""
            found[str(path)] = b"\n".join((str(path.relative_to(folder)).encode(), content, rows))
    return found


def readings(content: bytes) -> Iterator[bytes]:
    """Yield the bytes as they are and, of compressed content, what is in it."""
    yield content
    start = content.find(b"PAR1")
    if start >= 0 and content.rstrip(b"\n").endswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(content[start:].rstrip(b"\n")))
        yield str(table.schema).encode()
        yield str(table.to_pydict()).encode()
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            yield unpack(content)
        except (OSError, EOFError, zlib.error):
            continue


def rows_of(database: Path) -> Iterator[bytes]:
    """Yield every row of every table."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            yield from (repr(row).encode() for row in connection.execute(f'SELECT * FROM "{table}"'))

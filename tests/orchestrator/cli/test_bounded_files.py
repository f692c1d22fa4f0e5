"""Files of others that would unpack to more than there is room for, or are nested without end: one line, code 2."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audits.data import bounded, tables
from audits.data.bounded import table_within
from audits.data.id_lists import read_list
from audits.data.points import from_npz
from audits.data.tables import read_table
from audits.errors import BadInput
from orchestrator.cli.main import main
from orchestrator.engine.run.result_head import SCHEMA
from tests.cases.families import family

DEEP = b"[" * 100_000 + b"]" * 100_000


def refused(says: pytest.CaptureFixture[str], name: str, *words: str) -> None:
    """Give a command that must refuse the file ``name`` in one line."""
    assert main(list(words)) == 2, says.readouterr().err[-500:]
    assert name in says.readouterr().err.strip().splitlines()[-1]


def heading(length: int) -> bytes:
    """Return an .npy file whose heading promises so many numbers, of which there are eight."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (length,)})
    return file.getvalue() + bytes(64)


def promising(file: Path, *names: str, length: int = 10**15) -> Path:
    with zipfile.ZipFile(file, "w") as opened:
        for name in names:
            opened.writestr(f"{name}.npy", heading(length))
    return file


def repeated(file: Path, name: str = "score", rows: int = 4000, size: int = 10_000) -> Path:
    """Write a Parquet file of a few kilobytes that holds one long text in each of its rows."""
    texts = pa.array(["x" * size]).take(pa.array(np.zeros(rows, np.int64)))
    pq.write_table(pa.table({"id": range(rows), name: texts, "member": [0, 1] * (rows // 2)}), file)
    assert file.stat().st_size < 200_000
    return file


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine have 32 MB."""
    monkeypatch.setattr(bounded, "room", lambda: 2**24)


def test_scores_that_do_not_fit_are_refused(tmp_path: Path, room: None, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "scores.parquet", "score", str(repeated(tmp_path / "scores.parquet")))
    np.savez_compressed(tmp_path / "scores.npz", score=np.zeros(2**22), member=np.zeros(2**22, np.int8))
    refused(capsys, "scores.npz", "score", str(tmp_path / "scores.npz"))
    refused(capsys, "promise.npz", "score", str(promising(tmp_path / "promise.npz", "score", "member")))
    (tmp_path / "scores.json").write_bytes(DEEP)
    refused(capsys, "scores.json", "score", str(tmp_path / "scores.json"))


READERS: dict[str, Callable[[Path], Any]] = {
    "list": lambda path: read_list(str(path), f"target.members: {path}"),
    "data": lambda path: from_npz(path, "npz"),
    "table": read_table,
}


@pytest.mark.parametrize(
    ("reader", "name", "write"),
    [
        ("list", "a.parquet", lambda file: repeated(file, "note")),
        ("list", "a.npy", lambda file: file.write_bytes(heading(10**15))),
        ("list", "a.json", lambda file: file.write_bytes(DEEP)),
        ("data", "a.npz", lambda file: promising(file, "inputs", "labels")),
        ("data", "a.npz", lambda file: np.savez_compressed(file, inputs=np.zeros(2**22), labels=np.zeros(4, np.int64))),
    ],
    ids=["a text in many rows", "a heading", "a nested list", "headings", "zeros"],
)
def test_lists_and_data_that_do_not_fit_are_refused(
    reader: str, name: str, write: Callable[[Path], Any], tmp_path: Path, room: None
) -> None:
    write(tmp_path / name)
    with pytest.raises(BadInput, match=name) as caught:
        READERS[reader](tmp_path / name)
    assert "\n" not in str(caught.value)


def varint(number: int) -> bytes:
    """Return a number as Thrift writes it into the footer of a Parquet file."""
    number, found = 2 * number, b""
    while number >= 128:
        found, number = found + bytes([number % 128 | 128]), number // 128
    return found + bytes([number])


def understated(file: Path) -> Path:
    """Let the footer of a Parquet file say of its texts that they take a hundred bytes."""
    meta = pq.read_metadata(file)
    columns = [meta.row_group(0).column(column) for column in range(meta.num_columns)]
    sizes = [each.total_uncompressed_size for each in columns if each.physical_type == "BYTE_ARRAY"]
    data = file.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    end = data[footer:]
    for size in sizes:
        known, less = varint(size), varint(100)
        end = end.replace(known, less[:-1] + bytes([less[-1] | 128]) + bytes([128]) * (len(known) - 3) + b"\0")
    file.write_bytes(data[:footer] + end)
    meta = pq.read_metadata(file)
    assert 100 in [meta.row_group(0).column(column).total_uncompressed_size for column in range(meta.num_columns)]
    return file


POOLS: list[pa.MemoryPool] = []
"""Kept: an array may outlive the test that made it, and must not outlive its pool."""


@contextmanager
def counted() -> Iterator[pa.MemoryPool]:
    """Count what pyarrow allocates, from zero."""
    known = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(known))
    pa.set_memory_pool(POOLS[-1])
    try:
        yield POOLS[-1]
    finally:
        pa.set_memory_pool(known)


NESTED: dict[str, Callable[[pa.Array], pa.Array]] = {
    "flat": lambda texts: texts,
    "binary": lambda texts: texts.cast(pa.binary()),
    "struct": lambda texts: pa.StructArray.from_arrays([texts], ["bytes"]),
    "list": lambda texts: pa.ListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), texts),
    "list of structs": lambda texts: pa.ListArray.from_arrays(
        pa.array(range(len(texts) + 1), pa.int32()), pa.StructArray.from_arrays([texts], ["bytes"])
    ),
}


@family("lying, shape", product((False, True), NESTED), default=(0, 7, 9))
def test_no_more_is_unpacked_than_may_be_whatever_a_file_says_of_itself(
    lying: bool, shape: str, tmp_path: Path, room: None
) -> None:
    file = tmp_path / "a.parquet"
    texts = pa.array(["x" * 50_000]).take(pa.array(np.zeros(4000, np.int64)))
    pq.write_table(pa.table({"a": NESTED[shape](texts)}), file)
    del texts
    if lying:
        understated(file)
    with counted() as pool, pytest.raises(BadInput, match=r"a\.parquet takes more than"):
        bounded.table_within(file, str(file))
    assert pool.max_memory() < 2**26, "the texts take 200 MB"


@pytest.mark.parametrize("shape", NESTED)
def test_texts_that_fit_are_read_as_they_are(shape: str, tmp_path: Path, room: None) -> None:
    file = tmp_path / "a.parquet"
    texts = pa.array([None if n % 7 == 0 else str(n % 9) * (n % 5) for n in range(5000)])
    table = pa.table({"a": NESTED[shape](texts)})
    pq.write_table(table, file, row_group_size=1500)
    assert bounded.table_within(file, "a").equals(table)
    long = pa.table({"a": NESTED[shape](pa.array([str(n) * 200 for n in range(5000)]))})
    pq.write_table(long, file)  # a dictionary of 1 MB, and the rest without
    assert bounded.table_within(file, "a").equals(long)


def test_a_dictionary_is_counted_once_however_many_rows_refer_to_it(tmp_path: Path, room: None) -> None:
    rows, names = 40 * bounded.ROWS_OF_TEXT, [f"name {number:05}" * 100 for number in range(1000)]
    order = np.arange(rows) % len(names)
    named = pa.DictionaryArray.from_arrays(pa.array(order, pa.int32()), pa.array(names), ordered=True)
    table = pa.table({"who": named, "text": ["a"] * rows, "score": np.arange(rows)})
    pq.write_table(table, tmp_path / "pandas.parquet", row_group_size=rows // 2)
    alone = named.dictionary.nbytes
    assert 2 * alone + 16 * rows < bounded.room() < 40 * alone, "a copy a batch would be too much"
    found = table_within(tmp_path / "pandas.parquet", "it")
    assert found.schema == table.schema and found.equals(table)
    distinct = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(rows), pa.int32()), pa.array([f"{row:0300}" for row in range(rows)])
    )
    pq.write_table(pa.table({"who": distinct}), tmp_path / "many.parquet", row_group_size=rows // 8)
    with pytest.raises(BadInput, match="GiB"):
        table_within(tmp_path / "many.parquet", "it")


@family("kind", [pa.binary(50_000), pa.list_(pa.int64())], default=(0,))
def test_wide_rows_are_counted_before_many_of_them_are_read(kind: pa.DataType, tmp_path: Path, room: None) -> None:
    file, rows, value = tmp_path / "wide.parquet", 4000, bytes(50_000) if kind == pa.binary(50_000) else [0] * 6250
    wide = pa.array([value], kind).take(pa.array(np.zeros(rows, np.int64)))
    pq.write_table(pa.table({"x": wide, "score": range(rows)}), file)
    del wide
    assert file.stat().st_size < 2**20
    with counted() as pool, pytest.raises(BadInput, match="GiB"):
        table_within(file, "it")
    assert pool.max_memory() < 6 * bounded.room(), "and not 200 MB"


def saved(folder: Path, table: pa.Table, compression: str | None) -> Path:
    """Write a table as the library datasets does, and let a batch be compressed, which that one does not."""
    folder.mkdir()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(folder / "data.arrow", table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=1000)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    return folder


@family("codec", [None, "zstd", "lz4"], default=(0, 1))
def test_a_data_set_that_datasets_saved_is_read_as_far_as_it_fits(
    codec: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"x": np.zeros(2**20), "y": np.zeros(2**20, np.int64)})
    folder = saved(tmp_path / "set", table, codec)
    assert read_table(folder).equals(table)
    monkeypatch.setattr(tables, "MOST_BYTES", 2**22)
    with counted() as pool, pytest.raises(BadInput, match="set takes more than"):
        read_table(folder)
    assert pool.max_memory() < 2**23


def test_what_fits_is_read_as_it_is(tmp_path: Path, room: None) -> None:
    table = pq.read_table(repeated(tmp_path / "a.parquet", rows=100))
    assert bounded.table_within(tmp_path / "a.parquet", "a").equals(table)
    assert bounded.table_within(tmp_path / "a.parquet", "a", ["member", "id"]).equals(table.select(["member", "id"]))
    named = table.append_column("kind", pa.array(["a", "b"] * 50).dictionary_encode())
    pq.write_table(named, tmp_path / "b.parquet", row_group_size=7)
    assert bounded.table_within(tmp_path / "b.parquet", "b").equals(named)
    pq.write_table(named.slice(0, 0), tmp_path / "c.parquet")
    assert bounded.table_within(tmp_path / "c.parquet", "c", ["kind"]).schema == named.select(["kind"]).schema
    np.savez(tmp_path / "a.npz", x=np.arange(5), y=np.array(["a", "bc"]))
    found = bounded.arrays_within(tmp_path / "a.npz", "a")
    assert found["x"].tolist() == list(range(5))
    assert found["y"].tolist() == ["a", "bc"]


def result(folder: Path, **changes: Any) -> str:
    """Write a run of somebody else."""
    folder.mkdir()
    whole = {"schema": SCHEMA, "kind": "mia", "name": "a", "seed": 0, "plan": {}, "table": [{}]}
    settings = [{"setting": "plan", "overrides": {}}]
    (folder / "result.json").write_text(json.dumps({**whole, "settings": settings, **changes}))
    pq.write_table(pa.table({"attack": ["a"]}), folder / "scores.parquet")
    return str(folder)


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize(
    "changes",
    [
        {"plan": []},
        {"settings": [None]},
        {"settings": []},
        {"table": "x"},
        {"kind": None},
        {"kind": ["mia"]},
        {"seed": "0"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_result_that_is_none_is_refused(
    command: str, changes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = result(tmp_path / "theirs", **changes)
    refused(capsys, "theirs", command, theirs, *([result(tmp_path / "ours")] if command == "compare" else []))


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize(
    "text", [DEEP, b"[]", b"{", b"\xff\xfe", b'{"a": 1'], ids=["deep", "list", "open", "no text", "cut"]
)
def test_a_result_that_is_no_result_is_refused(
    command: str, text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = result(tmp_path / "theirs")
    (tmp_path / "theirs" / "result.json").write_bytes(text)
    refused(capsys, "theirs", command, theirs, *([result(tmp_path / "ours")] if command == "compare" else []))

"""A file whose name pyarrow would take for an address is a file: nothing is reached, and no library is run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import core

from audits.data.bounded import columns_of, table_within
from audits.data.id_lists import table_of
from audits.errors import BadInput
from orchestrator.engine.run.asked import answered

ROOT = Path(__file__).resolve().parents[3]
READS = {"ParquetFile", "read_table", "read_schema", "read_metadata", "read_pandas", "ParquetDataset"}
OPEN = {"source", "stream", "pa.BufferReader(data)", "io.BytesIO(file)"}
"""What pyarrow is handed: what orch has opened."""
NAMES = (
    "hdfs:/x.parquet",
    "fsspec+reference::data:a.json;base64,e30=.parquet",
    "s3:/bucket/x.parquet",
    "file:x.parquet",
)
READERS: dict[str, Callable[[Path], Any]] = {
    "columns": columns_of,
    "table": lambda file: table_within(file, "it"),
    "list": lambda file: table_of(file, "data.groups"),
}


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let pyarrow look for no address in what it is handed."""
    resolve = core._resolve_filesystem_and_path

    def resolved(path: Any, *others: Any, **named: Any) -> Any:
        assert not isinstance(path, str | Path), f"pyarrow may take {path} for an address"
        return resolve(path, *others, **named)

    monkeypatch.setattr(core, "_resolve_filesystem_and_path", resolved)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("reader", READERS)
def test_a_name_like_an_address_is_that_of_a_file(reader: str) -> None:
    for name in NAMES:
        with pytest.raises((BadInput, OSError)):
            READERS[reader](Path(name))
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2], "group": ["a", "b"]}), pa.OSFile(name, "wb"))
        assert READERS[reader](Path(name)) is not None


def test_answers_of_an_endpoint_are_counted_in_files() -> None:
    folder = Path("hdfs:")
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), pa.OSFile("hdfs:/x.parquet", "wb"))
    assert answered(folder) == 2


def test_pyarrow_is_handed_open_files_everywhere() -> None:
    found = []
    for top in ("actors", "audits", "orchestrator", "tune_spaces"):
        for file in (ROOT / top).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text())):
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
                    continue
                on_a_file_system = any(each.arg == "filesystem" for each in call.keywords)
                plain = call.func.attr in READS and ast.unparse(call.func.value) in ("pq", "parquet", "pyarrow.parquet")
                if plain and not on_a_file_system and ast.unparse(call.args[0]) not in OPEN:
                    found.append(f"{file.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)}")
    assert not found, "open it with audits.data.regular.opened, and hand that over:\n" + "\n".join(found)

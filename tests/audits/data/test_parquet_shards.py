"""Parquet shards: they give back what was written, and do not mix."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.data import bounded
from audits.data.catalogue import describe, load
from audits.data.dataset import Dataset
from audits.data.shards import METADATA_KEY, pack, write_shards
from audits.errors import BadInput
from tests.cases.families import as_one
from tests.cases.small_data_sets import small_dataset


@pytest.mark.parametrize("floats", [False, True])
@settings(max_examples=10)
@given(points=st.integers(1, 20), per_shard=st.integers(1, 25))
def test_shards_give_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, floats: bool, points: int, per_shard: int
) -> None:
    folder = tmp_path_factory.mktemp("shards") / "set"
    dataset = small_dataset(points, floats=floats)
    assert len(write_shards(dataset, str(folder), points_per_shard=per_shard)) == math.ceil(points / per_shard)
    again = load(f"parquet:{folder}")
    assert np.array_equal(again.inputs, dataset.inputs)
    assert again.inputs.dtype == dataset.inputs.dtype
    assert again.labels.tolist() == dataset.labels.tolist()
    assert (again.classes, again.value_range) == (dataset.classes, dataset.value_range)
    assert again.fingerprint == dataset.fingerprint
    facts = describe(f"parquet:{folder}")
    assert (facts.points, facts.shape, facts.classes) == (points, dataset.shape, dataset.classes)


def test_the_same_points_give_the_same_bytes() -> None:
    assert pack(small_dataset()) == pack(small_dataset())


def test_a_single_file_and_an_address_are_read(tmp_path: Path) -> None:
    (tmp_path / "one.parquet").write_bytes(pack(small_dataset()))
    assert len(load("parquet:one.parquet", tmp_path)) == 10
    assert len(load(f"parquet:file://{tmp_path}")) == 10


def test_a_missing_shard_is_noticed(tmp_path: Path) -> None:
    paths = write_shards(small_dataset(), str(tmp_path), points_per_shard=4)
    Path(paths[1]).unlink()
    with pytest.raises(BadInput, match="6 of 10 points"):
        load(f"parquet:{tmp_path}")


def test_shards_of_two_sets_do_not_mix(tmp_path: Path) -> None:
    write_shards(small_dataset(), str(tmp_path))
    with pytest.raises(BadInput, match="already holds Parquet files"):
        write_shards(small_dataset(11), str(tmp_path))
    (tmp_path / "part-2.parquet").write_bytes(pack(small_dataset(11)))
    with pytest.raises(BadInput, match="shards of 2 data sets"):
        load(f"parquet:{tmp_path}")


def test_foreign_and_damaged_parquet_files_are_refused(tmp_path: Path) -> None:
    table = pq.read_table(pack_to(tmp_path / "ours.parquet"))
    pq.write_table(table.replace_schema_metadata(None), tmp_path / "foreign.parquet")
    (tmp_path / "damaged.parquet").write_bytes(pack(small_dataset())[:-20])
    for call in (describe, load):
        with pytest.raises(BadInput, match="not one that 'orch data shard' wrote"):
            call(f"parquet:{tmp_path}/foreign.parquet")
        with pytest.raises(BadInput, match="cannot be read"):
            call(f"parquet:{tmp_path}/damaged.parquet")


def pack_to(path: Path) -> Path:
    path.write_bytes(pack(small_dataset()))
    return path


def test_shards_unpack_to_no_more_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size, rows = 2**18, 64
    black = Dataset("black", np.zeros((rows, 1, 512, 512), np.uint8), np.zeros(rows, np.int64), ("a",), (0, 1), None)
    (tmp_path / "part-0.parquet").write_bytes(pack(black))
    assert (tmp_path / "part-0.parquet").stat().st_size < size
    for most in (rows * size // 2, size // 2):
        monkeypatch.setattr(bounded, "room", lambda most=most: most)
        with pytest.raises(BadInput, match="GiB"):
            load(f"parquet:{tmp_path}")
    monkeypatch.setattr(bounded, "room", lambda: 2 * rows * size)
    assert load(f"parquet:{tmp_path}").fingerprint == black.fingerprint


@as_one(
    "change",
    [
        {"dtype": "O"},
        {"dtype": "no dtype"},
        {"shape": [1, 8, 9]},
        {"shape": "x"},
        {"value_range": 1},
        {"points": None},
        {"classes": None},
        {},
    ],
)
def test_a_header_that_does_not_fit_is_refused_in_one_line(change: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "part-0.parquet"
    table = pq.read_table(io.BytesIO(pack(small_dataset())))
    header = json.loads(table.schema.metadata[METADATA_KEY]) | change
    text = json.dumps(header).encode() if change else b"["
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: text}), file)
    with pytest.raises(BadInput) as caught:
        load(f"parquet:{tmp_path}")
    assert "\n" not in str(caught.value)
    table = table.set_column(0, "input", pa.array(["text"] * len(table)))
    pq.write_table(table, file)
    with pytest.raises(BadInput, match="columns"):
        load(f"parquet:{tmp_path}")


@as_one("shape", [[-1], [2, -4, -3], [0], [2**31], [2**40, 2**40]])
def test_points_of_a_size_that_no_row_has_are_refused(shape: list[int], tmp_path: Path) -> None:
    table = pq.read_table(io.BytesIO(pack(small_dataset())))
    header = json.loads(table.schema.metadata[METADATA_KEY]) | {"shape": shape}
    table = table.set_column(0, "input", pa.array([b"abc"] * len(table), pa.binary()))
    pq.write_table(
        table.replace_schema_metadata({METADATA_KEY: json.dumps(header).encode()}), tmp_path / "part-0.parquet"
    )
    with pytest.raises(BadInput, match="shape"):
        load(f"parquet:{tmp_path}")

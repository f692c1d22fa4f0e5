"""Payloads: what was packed comes back, and equal content is packed into equal bytes in every process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.store.payloads import pack_arrays, pack_table, unpack_arrays, unpack_table


@settings(deadline=None)
@given(st.dictionaries(st.text("abc.", min_size=1, max_size=4), st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?"])))
def test_arrays_come_back_as_they_were_packed(dtypes: dict[str, str]) -> None:
    arrays = {name: (np.arange(6) % 2).astype(dtype).reshape(2, 3).T for name, dtype in dtypes.items()}
    arrays |= {"scalar": np.array(2.5), "none": np.zeros((0, 3), np.float32)}
    found = unpack_arrays(pack_arrays(arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)
    assert pack_arrays(dict(reversed(arrays.items()))) == pack_arrays(arrays)


def test_equal_tables_are_packed_into_equal_bytes() -> None:
    columns = {"name": ["a", "b", None, "a"], "score": [0.5, float("nan"), 1e-300, -0.0], "point": [3, 1, 2, 2]}
    whole = pa.table(columns)
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 3)])
    padded = pa.concat_tables([whole, whole]).slice(4, 4)
    data = pack_table(whole)
    assert pack_table(chunked) == data
    assert pack_table(padded) == data
    encoded = [
        part.set_column(0, "name", part["name"].dictionary_encode()) for part in (whole.slice(2), whole.slice(0, 2))
    ]
    assert pack_table(pa.concat_tables(reversed(encoded))) == data
    assert pack_table(whole.replace_schema_metadata({"written": "today"})) == data
    assert pack_table(unpack_table(data)) == data
    assert unpack_table(data).select(["name", "point"]).equals(whole.select(["name", "point"]))


@pytest.mark.long
def test_packing_does_not_depend_on_the_process() -> None:
    """In short: the tests of keys, and arrays that come back, beside it."""
    code = textwrap.dedent("""
        import hashlib, numpy, pyarrow
        from orchestrator.engine.jobs.keys import artefact_key
        from orchestrator.engine.store.payloads import pack_arrays, pack_table
        table = pack_table(pyarrow.table({"a": ["x", "y"], "b": [1.5, 2.5]}))
        arrays = pack_arrays({name: numpy.arange(3.0) for name in {"one", "two", "three"}})
        print(hashlib.sha256(table + arrays).hexdigest(), artefact_key("train", {"b": {"y": 1, "x": 2.0}, "a": [1]}))
    """)

    here = io.StringIO()
    with redirect_stdout(here):
        exec(code, {})
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[4],
        env={"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert here.getvalue() == there.stdout != ""

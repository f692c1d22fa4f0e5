"""Files of scores as tables. Nothing is ever unpickled."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from audits.errors import BadInput

ENDINGS = (".csv", ".tsv", ".parquet", ".npz", ".json")
MOST_WORDS = 160
FIRST_BYTES = 2**16
SEPARATORS = {",": "commas", "\t": "tabs"}
Arrays = Mapping[str, NDArray[Any]]


def ending(path: Path) -> str:
    """Return how a file's name ends; raises BadInput for a file that is not there, is empty or is no table."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; give a file of scores")
    if not path.is_file():
        raise BadInput(f"{path} is not there; give a file of scores ({', '.join(ENDINGS)})")
    if not path.stat().st_size:
        raise BadInput(f"{path} is empty: there is nothing to judge")
    found = path.suffix.lower()
    if found not in ENDINGS:
        never = "; pickle files are never read" if found in (".pkl", ".pickle", ".joblib", ".pt", ".pth") else ""
        raise BadInput(f"{path} is no table of scores by its name; allowed: {', '.join(ENDINGS)}{never}")
    return found


def one_line(error: Exception) -> str:
    """Return the first line of an error, cut where it is long."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:MOST_WORDS]


def read_text_table(path: Path, delimiter: str) -> pa.Table:
    """Return a CSV or TSV file as a table."""
    try:
        with path.open("rb") as file:
            first = file.readline(FIRST_BYTES)
        if b";" in first and delimiter.encode() not in first:
            raise BadInput(
                f"{path}: its columns are separated by ';'; separate them by {SEPARATORS[delimiter]}, and write "
                "numbers with a '.'"
            )
        parsed = pyarrow.csv.ParseOptions(delimiter=delimiter)
        return pyarrow.csv.read_csv(path, parse_options=parsed)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise BadInput(f"{path} cannot be read as {path.suffix[1:].upper()}: {one_line(error)}") from None


def read_parquet(path: Path) -> pa.Table:
    """Return a Parquet file as a table."""
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path} cannot be read as Parquet: {one_line(error)}") from None


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of an .npz file by name; raises BadInput for one that holds pickled objects."""
    found: dict[str, NDArray[Any]] = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            for name in getattr(file, "files", ()):
                try:
                    found[name] = file[name]
                except ValueError:
                    raise BadInput(
                        f"{path}: array {name!r} holds Python objects, which are never unpickled; save it as numbers "
                        "or text"
                    ) from None
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} is no .npz file: {one_line(error)}") from None
    return found


def read_json(path: Path) -> Any:
    """Return the value of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise BadInput(f"{path} cannot be read as JSON: {one_line(error)}") from None


def table_of_arrays(arrays: Arrays, path: Path) -> pa.Table:
    """Return vectors of equal length as a table; other arrays are left out."""
    vectors = {name: each for name, each in arrays.items() if each.ndim == 1}
    lengths = {name: len(each) for name, each in vectors.items()}
    longest = max(lengths.values(), default=0)
    kept = {name: pa.array(each) for name, each in vectors.items() if lengths[name] == longest}
    if not kept:
        shapes = ", ".join(f"{name} {each.shape}" for name, each in arrays.items()) or "nothing"
        raise BadInput(f"{path} has no vectors of scores; it has {shapes}")
    return pa.table(kept)


def table_of_json(value: Any, path: Path) -> pa.Table:
    """Return a list of records, or an object of lists of equal length, as a table."""
    try:
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            return pa.Table.from_pylist(value)
        if isinstance(value, dict):
            columns = {name: each for name, each in value.items() if isinstance(each, list)}
            if columns and len({len(each) for each in columns.values()}) == 1:
                return pa.table({name: pa.array(each) for name, each in columns.items()})
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise BadInput(f"{path}: a column mixes kinds of values: {one_line(error)}") from None
    raise BadInput(f"{path} is no table: needed a list of records, or an object of lists of equal length")


def read_table(path: Path) -> pa.Table:
    """Return a file of any of ``ENDINGS`` as a table."""
    kind = ending(path)
    if kind in (".csv", ".tsv"):
        return read_text_table(path, "\t" if kind == ".tsv" else ",")
    if kind == ".parquet":
        return read_parquet(path)
    return table_of_arrays(read_arrays(path), path) if kind == ".npz" else table_of_json(read_json(path), path)

"""Files of scores as tables. Nothing is ever unpickled."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from audits.data.bounded import arrays_within, table_within
from audits.data.text_tables import text_of, text_table
from audits.errors import BadInput

ENDINGS = (".csv", ".tsv", ".parquet", ".npz", ".json")
MOST_WORDS = 160
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


def read_text(path: Path) -> pa.Table:
    """Return a CSV or TSV file as a table of text."""
    try:
        return text_table(path, str(path), "\t" if path.suffix.lower() == ".tsv" else ",")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {one_line(error)}") from None


def read_parquet(path: Path) -> pa.Table:
    """Return a Parquet file as a table."""
    try:
        return table_within(path, str(path))
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path} cannot be read as Parquet: {one_line(error)}") from None


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of an .npz file by name; raises BadInput for one that holds pickled objects."""
    try:
        return arrays_within(path, str(path))
    except BadInput:
        raise
    except TypeError:
        raise BadInput(f"{path} is no .npz file but one array (.npy); save it with numpy.savez, by name") from None
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise BadInput(f"{path} is no .npz file: {one_line(error)}") from None


def read_json(path: Path) -> Any:
    """Return the value of a JSON file, its numbers as they are written, NaN as null.

    Raises BadInput for another encoding, and for an object that has a key twice.
    """
    try:
        text = text_of(path, str(path))
        value = json.loads(
            text,
            parse_int=str,
            parse_float=str,
            parse_constant=lambda word: None if word == "NaN" else word,
            object_pairs_hook=lambda pairs: _object(pairs, path),
        )
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except BadInput:
        raise
    except UnicodeEncodeError:
        raise BadInput(
            f"{path} holds half a character (a lone surrogate, \\ud800 to \\udfff), which is no text"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read as JSON: {one_line(error)}") from None
    return value


def _object(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    """Return an object of a JSON file; raises BadInput for a key that stands there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadInput(f"{path} has an object with several values of {twice!r}; give each key once")
    return found

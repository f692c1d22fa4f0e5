"""Files that list points, read as texts or whole numbers: nothing is guessed of what a text may mean."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.arrays import Bools
from audits.data.bounded import array_within, table_within
from audits.data.class_folders import is_image
from audits.data.ids import Points, Written, number_of
from audits.data.lfs_pointers import check_fetched
from audits.data.membership_words import ALLOWED, COLUMNS, SPLIT, membership_of
from audits.data.regular import opened
from audits.data.text_tables import text_of, text_table
from audits.errors import BadInput
from audits.home import expanded

if TYPE_CHECKING:
    import pyarrow as pa

FILES = (".txt", ".csv", ".tsv", ".parquet", ".npy", ".json")
ID = "id"
INDEX = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")
"""Columns that pandas writes where a row's number is kept: named by nothing, or by what stands for it."""
MOST_BYTES = 2**30
COMMENT = re.compile(r"(^|\s+)#.*")
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Listed:
    """Points (n,) as a file lists them, and what a second column says of them.

    ``member``: (n,), whether each is a member; None where the file does not say. ``comments``: as ``comments_of``.
    """

    points: Written
    member: Bools | None = None
    comments: Sequence[str] = ()


def read_list(file: str, what: str) -> Listed | Bools:
    """Return what a file lists, or the bools (N,) of an .npy file; ``what``: how messages call the file.

    .txt: a point a line (blank lines and what follows a # are skipped); .csv, .tsv and .parquet: a column ``id``, or
    one column; beside it at most one of ``member``, ``is_member``, ``membership`` and ``split``; .npy: whole numbers or
    texts (n,), or bools; .json: one list. Raises BadInput for a file that cannot be read, and for other columns.
    """
    path = expanded(file)
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{what} is not a file; give one that lists points ({', '.join(FILES)})")
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{what} has more than {MOST_BYTES / 2**30:.0f} GiB; is it a list of ids?")
        match path.suffix:
            case ".npy":
                return from_array(array_within(path, what), what)
            case ".csv" | ".tsv" | ".parquet":
                return from_table(table_of(path, what), what, headed=path.suffix == ".parquet")
            case ".json":
                return Listed(from_json(json.loads(text_of(path, what)), what))
        text = text_of(path, what)
        return Listed(lines_of(text), comments=comments_of(text))
    except BadInput:
        raise
    except (OSError, ValueError, RecursionError) as error:
        said = (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip().splitlines()[0]
        raise BadInput(f"{what} cannot be read: {said}") from None


def lines_of(text: str) -> list[str]:
    """Return the lines without comments, those that hold something."""
    found = (COMMENT.sub("", line) for line in LINE_END.split(text))
    return [line for line in found if line.strip()]


def comments_of(text: str) -> list[str]:
    """Return the lines, whole, of which something is skipped as a comment and which may be names of files."""
    lines = (line for line in LINE_END.split(text) if COMMENT.search(line))
    return [line.strip() for line in lines if "/" in line or is_image(line.strip())]


def refuse_commented(comments: Sequence[str], points: Points, what: str) -> None:
    """Refuse a list of which a line holds a comment, by its #, and is the name of a point as well."""
    both = next((line for line in comments if points.called.meant(line)), None)
    if both is None:
        return
    way = (
        f"write ./{both} for the point" if both.startswith("#") else "list the points in a .csv file, without comments"
    )
    raise BadInput(f"{what} has the line {both!r}, which holds a comment and is the name of a point; {way}")


def from_array(found: np.ndarray[tuple[int, ...], np.dtype[np.generic]], what: str) -> Listed | Bools:
    """Return the points of an array of whole numbers or texts, or of bools."""
    if found.ndim == 1 and found.dtype == np.bool_:
        return np.asarray(found, np.bool_)
    if found.ndim == 1 and found.dtype.kind in "iu":
        return Listed(whole(found))
    if found.ndim == 1 and found.dtype.kind in "fU":
        return Listed([str(value) for value in found.tolist()])
    raise BadInput(
        f"{what} is an array of {found.dtype} of shape {found.shape}; allowed: whole numbers or texts (n,), or a bool "
        "for every point of the data set"
    )


def whole(found: np.ndarray[tuple[int, ...], np.dtype[Any]]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return whole numbers as int64; those that are too large stay too large for any data set."""
    kept = np.minimum(found, np.uint64(2**63 - 1)) if found.dtype == np.uint64 else found
    return kept.astype(np.int64)


def from_json(found: Any, what: str) -> list[str]:
    """Return the points of a JSON list of whole numbers and texts."""
    if not isinstance(found, list):
        raise BadInput(f"{what} holds no JSON list; give one of ids or names")
    odd = next((one for one in found if isinstance(one, bool) or not isinstance(one, str | int | float)), None)
    if odd is not None or None in found:
        raise BadInput(f"{what} holds {str(odd)[:40]!r}; give a list of ids or names alone")
    return [str(one) for one in found]


def table_of(path: Path, what: str) -> pa.Table:
    """Return a Parquet file, a file of columns between tabs (.tsv) or, of any other ending, between commas.

    Texts stay as they are written. Raises BadInput, which calls the file ``what``, for one that cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix != ".parquet":
            return text_table(path, what, "\t" if path.suffix == ".tsv" else ",")
        check_fetched(path, what)
        with opened(path) as stream, pq.ParquetFile(stream) as file:
            names = file.schema_arrow.names
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise BadInput(f"{what} has several columns called {twice!r}; give each column a name of its own")
        return with_range(table_within(path, what))
    except (OSError, pa.ArrowException) as error:
        said = (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip().splitlines()[0]
        raise BadInput(f"{what} cannot be read: {said}") from None


def with_range(table: pa.Table) -> pa.Table:
    """Return a table with the named index that pandas kept as a range alone, where it has rows and no such column."""
    import pyarrow as pa

    try:
        found = json.loads((table.schema.metadata or {})[b"pandas"])["index_columns"]
        (name, ids), *_ = [
            (each["name"], range(each["start"], each["stop"], each["step"])) for each in found if isinstance(each, dict)
        ]
    except (KeyError, TypeError, ValueError, RecursionError):
        return table
    if not isinstance(name, str) or name in table.column_names or (table.num_columns and len(ids) != len(table)):
        return table
    return table.append_column(name, pa.array(ids, pa.int64())) if table.num_columns else pa.table({name: ids})


def from_table(table: pa.Table, what: str, headed: bool = True) -> Listed:
    """Return the points of a table, and what its second column says; ``headed``: its first line is surely a heading."""
    columns = table.column_names
    if ID not in columns:
        if headed or len(columns) != 1 or INDEX.fullmatch(columns[0]):
            raise BadInput(f"{what} has the columns {', '.join(columns)[:200]}; needed: {ID}")
        return Listed([columns[0], *texts_of(table, columns[0], what)])
    others = [name for name in columns if name != ID]
    odd = next((name for name in others if name not in COLUMNS), None)
    if odd is not None:
        about = "the index of pandas (write it with index=False)" if INDEX.fullmatch(odd) else "no column of a list"
        raise BadInput(
            f"{what} has the column {odd!r}, {about}; allowed: {ID} alone, or with one of {', '.join(COLUMNS)}"
        )
    if len(others) > 1:
        raise BadInput(f"{what} has the columns {' and '.join(others)}, which both say who is a member; keep one")
    return Listed(written_points(table, ID, what), said(table, others[0], what) if others else None)


def written_points(table: pa.Table, name: str, what: str) -> Written:
    """Return a column of points as whole numbers or texts; raises BadInput for other types, and for missing ones."""
    import pyarrow as pa

    column = table[name]
    if column.null_count:
        raise BadInput(f"{what} has {column.null_count} of {len(column)} rows without an {name}; give each row one")
    if pa.types.is_integer(column.type):
        return whole(column.to_numpy())
    return texts_of(table, name, what)


def texts_of(table: pa.Table, name: str, what: str) -> list[str]:
    """Return a column of texts, numbers or bools as texts, "" where one is missing; raises BadInput for others."""
    import pyarrow as pa

    column = table[name].combine_chunks()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = (
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        *(pa.types.is_integer, pa.types.is_floating),
    )
    if not any(is_kind(kind) for is_kind in (*plain, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)):
        raise BadInput(f"{what}: column {name!r} is of type {kind}; write it as text or as whole numbers")
    return ["" if value is None else str(value) for value in column.to_pylist()]


def said(table: pa.Table, name: str, what: str) -> Bools:
    """Return whether each row of a column says member; raises BadInput for what says neither."""
    texts: Sequence[str] = texts_of(table, name, what)
    words = {text: membership_of(text) for text in dict.fromkeys(texts)}
    number = next((text for text in words if name == SPLIT and number_of(text) is not None), None)
    if number is not None:
        raise BadInput(
            f"{what}: column {name!r} has {number!r}, which stands for train in some lists and for test in others; "
            "write train and test, or call a column of 0/1 member"
        )
    odd = [text for text, word in words.items() if word is None]
    if odd:
        count = sum(words[text] is None for text in texts)
        raise BadInput(
            f"{what}: column {name!r} has {odd[0][:40]!r} ({count} of {len(texts)} rows say neither member nor "
            f"non-member); allowed: {ALLOWED}"
        )
    return np.array([bool(words[text]) for text in texts], np.bool_)

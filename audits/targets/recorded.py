"""Answers that were recorded: a table of a user's own about points of a data set, or the record of a served model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from audits.arrays import Ids
from audits.data.tensors import as_float
from audits.errors import BadInput
from audits.queries.served.json_path import Unreadable
from audits.queries.served.keys import input_keys
from audits.queries.served.reading import Reading
from audits.queries.served.record import SCHEMA, recorded

ID, LABEL = "id", "label"

T = TypeVar("T")


class Recorded:
    """Answers by what an input is made of (``input_keys``); nothing else is known, and nobody is asked."""

    def __init__(self, table: pa.Table, name: str) -> None:
        self.name = name
        self._known = dict(zip(table["key"].to_pylist(), table["answer"].to_pylist(), strict=True))

    def __call__(self, points: torch.Tensor) -> list[Any]:
        """Return the answer to each of ``points`` (N, ...); raises BadInput for an input that has none."""
        keys = input_keys(points)
        lacks = dict.fromkeys(key for key in keys if key not in self._known)
        if lacks:
            raise BadInput(
                f"target.weights: {self.name} has no answer to {len(lacks)} of {len(set(keys))} inputs (first: row "
                f"{keys.index(next(iter(lacks)))} of a batch); give answers to all points that the audit asks about, "
                "and to adaptive attacks, which ask about inputs of their own making, the address of the served model"
            )
        return [json.loads(self._known[key]) for key in keys]


def of_record(folder: str) -> pa.Table:
    """Return all answers in the folder of a record: a row of key and answer for each input."""
    record = recorded(Path(folder).expanduser())
    keys = record.keys()
    answers = [json.dumps(answer) for answer in record.answers(keys)]
    return pa.table([pa.array(keys, pa.binary(16)), answers], SCHEMA)


def of_points(
    file: str, inputs: Callable[[Ids], torch.Tensor], points: int, reading: Reading, names: Sequence[str]
) -> pa.Table:
    """Return the answers in a Parquet file as ``of_record`` does.

    The file has a column ``id`` and either ``label`` or one column a class, called by its index or by its name (of
    ``reading.class_names``, or else of ``names``, the data set's). ``inputs``: points by id, as the model sees them;
    ``points``: how many there are. Raises BadInput for another table, and for answers that ``reading`` cannot read.
    """
    table = read(file, lambda table: table.read())
    ids = ids_of(table, file, points)
    told = [json.dumps(answer) for answer in answers_of(table, file, reading, names)]
    found: dict[bytes, str] = {}
    for first in range(0, len(ids), 4096):
        keys = input_keys(as_float(inputs(ids[first : first + 4096])))
        for key, answer in zip(keys, told[first : first + 4096], strict=True):
            found.setdefault(key, answer)  # a point that the data set holds twice
    return pa.table([pa.array(found, pa.binary(16)), list(found.values())], SCHEMA)


def check_columns(file: str, reading: Reading) -> None:
    """Refuse a Parquet file that is not there, or has no column of points or of labels."""
    names = read(file, lambda table: table.schema_arrow.names)
    if ID not in names:
        raise BadInput(f"target.weights: {file} has the columns {', '.join(names[:8])}; needed: {ID}, and answers")
    if reading.gives == "labels" and LABEL not in names:
        raise lacking(file, names, LABEL, reading)


def check_answers(file: str, points: int, reading: Reading, names: Sequence[str]) -> None:
    """Refuse a Parquet file that ``of_points`` refuses, and answers that ``reading`` cannot read.

    ``points``: how many the data set has, 0 where that is not known yet.
    """
    check_columns(file, reading)
    table = read(file, lambda table: table.read())
    if points:
        ids_of(table, file, points)
    try:
        reading.check(answers_of(table, file, reading, names))
    except Unreadable as error:
        raise BadInput(f"target.weights: {file} answered {error} (target.served)") from None


def read(file: str, part: Callable[[pq.ParquetFile], T]) -> T:
    """Return a part of a Parquet file."""
    try:
        return part(pq.ParquetFile(Path(file).expanduser()))
    except (pa.ArrowException, OSError, ValueError) as error:
        said = (getattr(error, "strerror", None) or str(error)).strip().splitlines()[0]
        raise BadInput(f"target.weights: {file} cannot be read as Parquet: {said}") from None


def lacking(file: str, names: Sequence[str], column: str, reading: Reading) -> BadInput:
    """Return the error of a table without a column of answers."""
    needed = LABEL if column == LABEL else f"a column for each of {reading.classes} classes, by index or by name"
    return BadInput(
        f"target.weights: {file} has no column {column} (it has {', '.join(names[:8])}); for target.served.gives: "
        f"{reading.gives} it needs {ID} and {needed}"
    )


def ids_of(table: pa.Table, file: str, points: int) -> Ids:
    """Return the ids of a table of answers, each a point of the data set and there once."""
    if ID not in table.column_names or not pa.types.is_integer(table.schema.field(ID).type):
        has = ", ".join(table.column_names[:8])
        raise BadInput(f"target.weights: {file} has the columns {has}; needed: {ID}, whole numbers: the points")
    if table[ID].null_count or not len(table):
        raise BadInput(f"target.weights: {file} has {table[ID].null_count} of {len(table)} rows without an {ID}")
    ids: Ids = table[ID].to_numpy().astype(np.int64)
    outside = ids[(ids < 0) | (ids >= points)]
    if len(outside):
        raise BadInput(
            f"target.weights: {file} has {ID} {outside[0]} ({len(outside)} of {len(ids)} are outside), but the data "
            f"set has {points} points; allowed: 0 to {points - 1}"
        )
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise BadInput(f"target.weights: {file} has {ID} {values[counts > 1][0]} twice; give each point one answer")
    return ids


def answers_of(table: pa.Table, file: str, reading: Reading, names: Sequence[str]) -> list[Any]:
    """Return the answers of a table's rows, as a server would give them and ``reading`` reads them."""
    if reading.gives == "labels":
        columns = [LABEL]
    else:
        own = dict(reading.class_names) if isinstance(reading.class_names, Mapping) else {}
        named = sorted(own, key=lambda name: own[name]) if own else [str(name) for name in names]
        called = [[str(index) for index in range(reading.classes)], named]
        columns = next((each for each in called if set(each) <= set(table.column_names)), called[0])
    for name in columns:
        if name not in table.column_names:
            raise lacking(file, table.column_names, name, reading)
    found = [table[name].to_pylist() for name in columns]
    return found[0] if columns == [LABEL] else [list(row) for row in zip(*found, strict=True)]

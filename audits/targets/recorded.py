"""Answers that were recorded: a table of a user's own about points of a data set, or the record of a served model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import torch

from audits.arrays import Ids
from audits.data.bounded import columns_of, table_within
from audits.data.id_lists import texts_of, written_points
from audits.data.ids import Points, number_of, places
from audits.data.lfs_pointers import check_fetched
from audits.data.tensors import as_float
from audits.errors import BadInput, did_you_mean
from audits.home import expanded
from audits.queries.served.json_path import Unreadable
from audits.queries.served.keys import input_keys
from audits.queries.served.reading import Reading
from audits.queries.served.record import SCHEMA, recorded
from audits.targets.forms import path_of

ID, LABEL = "id", "label"
AT_ONCE = 4096
"""Inputs that are held at a time."""

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
    record = recorded(path_of(folder))
    keys = record.keys()
    answers = [json.dumps(answer) for answer in record.answers(keys)]
    return pa.table([pa.array(keys, pa.binary(16)), answers], SCHEMA)


def of_points(
    file: str, inputs: Callable[[Ids], torch.Tensor], points: Points, reading: Reading, names: Sequence[str]
) -> pa.Table:
    """Return the answers in a Parquet file as ``of_record`` does; ``inputs``: points by id, as the model sees them.

    Raises BadInput as ``answers_in`` does.
    """
    ids, answers = answers_in(file, points, reading, names)
    found: dict[bytes, str] = {}
    for key, answer in zip(keys_of(ids, inputs), answers, strict=True):
        found.setdefault(key, json.dumps(answer))  # a point that the data set holds twice
    return pa.table([pa.array(found, pa.binary(16)), list(found.values())], SCHEMA)


def keys_of(ids: Ids, inputs: Callable[[Ids], torch.Tensor]) -> list[bytes]:
    """Return the keys of points by which answers are known; ``inputs``: points by id, as the model sees them."""
    parts = (ids[first : first + AT_ONCE] for first in range(0, len(ids), AT_ONCE))
    return [key for part in parts for key in input_keys(as_float(inputs(part)))]


def answered_in(file: str, points: Points) -> Ids:
    """Return the ids (n,) of the points to which a Parquet file has answers, which are not looked at."""
    return ids_of(read(file, table_within), file, points)


def answers_in(file: str, points: Points, reading: Reading, names: Sequence[str]) -> tuple[Ids, list[Any]]:
    """Return the ids (n,) and answers in a Parquet file, as a server would give them; no input is needed for it.

    The file has a column ``id`` (ids or names of ``points``) and either ``label`` or one column a class, called by its
    index or by its name (of ``reading.class_names``, or else of ``names``, the data set's). Labels are indices, whole
    numbers in whatever type, or names. Raises BadInput for another table, and for answers that cannot be read.
    """
    table = read(file, table_within)
    ids = ids_of(table, file, points)
    answers = answers_of(table, file, reading, names)
    try:
        reading.check(answers)
    except Unreadable as error:
        raise BadInput(f"target.weights: {file} has {error}") from None
    return ids, answers


def check_columns(file: str, reading: Reading) -> None:
    """Refuse a Parquet file that is not there, or has no column of points or of labels."""
    names = read(file, lambda path, _: columns_of(path))
    if ID not in names:
        raise BadInput(f"target.weights: {file} has the columns {', '.join(names[:8])}; needed: {ID}, and answers")
    if reading.gives == "labels" and LABEL not in names:
        raise lacking(file, names, LABEL, reading)
    if reading.gives != "labels" and len(names) <= reading.classes:
        raise lacking(file, names, "0", reading)


def read(file: str, part: Callable[[Path, str], T]) -> T:
    """Return a part of a Parquet file: ``part`` of its path, and of how messages call it."""
    path = expanded(file)
    check_fetched(path, f"target.weights: {file}")
    try:
        return part(path, f"target.weights: {file}")
    except BadInput:
        raise
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


def ids_of(table: pa.Table, file: str, points: Points) -> Ids:
    """Return the ids of a table of answers, each a point of the data set and there once."""
    what = f"target.weights: {file}"
    if table.column_names.count(ID) != 1:
        raise BadInput(f"{what} has the columns {', '.join(table.column_names[:8])}; needed: one {ID}, the points")
    if not len(table):
        raise BadInput(f"{what} has no rows; give the answer to each point that the audit asks about")
    return points.ids(written_points(table, ID, what), what)


def answers_of(table: pa.Table, file: str, reading: Reading, names: Sequence[str]) -> list[Any]:
    """Return the answers of a table's rows, as a server would give them and ``reading`` reads them."""
    own = dict(reading.class_names) if isinstance(reading.class_names, Mapping) else {}
    named = sorted(own, key=lambda name: own[name]) if own else [str(name) for name in names]
    if reading.gives == "labels":
        if LABEL not in table.column_names:
            raise lacking(file, table.column_names, LABEL, reading)
        return labels_of(table, file, reading, named)
    numbered = [str(index) for index in range(reading.classes)]
    fitting = [
        each for each in (numbered, named) if len(each) == reading.classes and set(each) <= set(table.column_names)
    ]
    if own and fitting and set(named) == set(numbered):
        fitting = [named]  # the plan says what the digits mean
    if len(fitting) == 2 and numbered != named:
        if set(named) == set(numbered):
            raise BadInput(
                f"target.weights: {file} has the columns {numbered[0]} to {numbered[-1]}, and classes of the data are "
                f"called so in another order; say what they are by target.served.class_names ({{{named[0]!r}: 0, …}})"
            )
        raise BadInput(
            f"target.weights: {file} has a column for each class by its index and by its name, {numbered[0]} and "
            f"{named[0]} for the first; keep those of one kind"
        )
    columns = fitting[0] if fitting else numbered
    for name in columns:
        if table.column_names.count(name) != 1:
            raise lacking(file, table.column_names, name, reading)
    found = [table[name].to_pylist() for name in columns]
    return [list(row) for row in zip(*found, strict=True)]


def labels_of(table: pa.Table, file: str, reading: Reading, named: Sequence[str]) -> list[Any]:
    """Return the column of labels: names as they are where the plan gives them, else indices."""
    texts = texts_of(table, LABEL, f"target.weights: {file}")
    if reading.class_names is not None:
        kind = table[LABEL].type
        return [whole_text(text) for text in texts] if pa.types.is_floating(kind) else list(texts)
    by_name = places(named if len(named) == reading.classes else ())  # names of other classes are in other places
    found = {}
    for text in dict.fromkeys(texts):
        number = number_of(text)
        meant = {*([number] if number is not None and number < reading.classes else []), *by_name.get(text, ())}
        if len(meant) != 1:
            some = (
                f"may be {' or '.join(map(str, sorted(meant)))}"
                if meant
                else f"is no class{did_you_mean(text, by_name)}"
            )
            raise BadInput(
                f"target.weights: {file} has the label {text[:40]!r}, which {some}; allowed: the index of a class, 0 "
                f"to {reading.classes - 1}, or its name (as in target.served.class_names, or the data)"
            )
        found[text] = meant.pop()
    return [found[text] for text in texts]


def whole_text(text: str) -> str:
    """Return a whole number that a column of floats holds without its point, and other texts as they are."""
    number = number_of(text)
    return text if number is None else str(number)

"""Columns of a table as features: those that number rows or tell of membership are none, and others are doubtful."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.data.id_lists import INDEX
from audits.data.membership_words import COLUMNS
from audits.errors import BadInput, did_you_mean, how_many

if TYPE_CHECKING:
    import pyarrow as pa

ABOUT_POINTS = frozenset({"id", "group", *COLUMNS})
"""Names of columns that say which point a row is, or what happened to it: a model that reads them cheats."""
MOST_NAMED = 8


def features(name: str, table: pa.Table, label: str, keep: Collection[str] = ()) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns of a table that are inputs, and what is said of those that are left out.

    Left out, besides the ``label``: the index of pandas, and columns called as lists call ids, groups and membership;
    those in ``keep`` stay. Raises BadInput for a name in ``keep`` that is no column.
    """
    columns: list[str] = table.column_names
    for wanted in sorted(keep):
        if wanted not in columns:
            raise BadInput(
                f"data set {name!r}: keep is {wanted!r}{did_you_mean(wanted, columns)}; columns: {', '.join(columns)}"
            )
    index = index_of_pandas(table.schema)
    out = [
        column
        for column in columns
        if column not in (label, *keep)
        and (column in index or INDEX.fullmatch(column) or column.casefold() in ABOUT_POINTS)
    ]
    found = [column for column in columns if column != label and column not in out]
    if not out:
        return found, ()
    them = ("it numbers rows or tells", "it is") if len(out) == 1 else ("they number rows or tell", "they are")
    left = f"{how_many(len(found), 'feature')} {'remains' if len(found) == 1 else 'remain'}"
    return found, (
        f"{name}: {listed(out)} left out ({left}), since {them[0]} of groups or membership; if "
        f"{them[1]} a feature, say so with ?keep={','.join(out)}",
    )


def index_of_pandas(schema: pa.Schema) -> set[str]:
    """Return the columns that pandas wrote as its index."""
    try:
        found = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {each for each in found if isinstance(each, str)}
    except (KeyError, TypeError, ValueError):
        return set()


def doubts(name: str, table: pa.Table, columns: Sequence[str], labels: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Return a line for each kind of doubtful feature: a constant, a key of rows, the label again, or merged numbers.

    ``columns`` of the ``table`` are numbers; ``labels``: (N,). They stay features.
    """
    constant, keys, again, merged = [], [], [], []
    for column in columns:
        values = values_of(table, column)
        found = np.unique(values)
        whole = bool((found == np.rint(found)).all())
        if len(found) < 2:
            constant.append(column)
        elif len(found) == len(values) and whole:
            keys.append(column)
        elif is_label(values, labels):
            again.append(column)
        elif whole and len(np.unique(found.astype(np.float32))) < len(found):
            merged.append(column)
    said = (
        (constant, "the same in every row: no feature"),
        (keys, "a whole number of its own in every row: a key of rows rather than a feature"),
        (again, "the label in other words: a model that reads it needs no other feature"),
        (merged, "rounded to float32, so that different whole numbers become one; subtract the smallest"),
    )
    return tuple(
        f"warning: {name}: {listed(each)} {what}; leave it out unless it is meant" for each, what in said if each
    )


def values_of(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return a column of numbers (N,), NaN where one is missing; bools are 0 and 1."""
    import pyarrow as pa

    column = table[name]
    found: npt.NDArray[Any] = (column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column).to_numpy()
    return found


def is_label(values: npt.NDArray[Any], labels: npt.NDArray[np.int64]) -> bool:
    """Say whether a column (N,) has one value for each label (N,), and another for every other label."""
    _, first, place = np.unique(values, return_index=True, return_inverse=True)
    classes = np.unique(labels)
    same = bool((labels[first][place] == labels).all())
    return same and len(first) == len(classes)


def listed(columns: Sequence[str]) -> str:
    """Return the names of some columns, with the verb."""
    more = f" and {len(columns) - MOST_NAMED} others" if len(columns) > MOST_NAMED else ""
    kind = "column" if len(columns) == 1 else "columns"
    return f"{kind} {', '.join(map(repr, columns[:MOST_NAMED]))}{more} {'is' if len(columns) == 1 else 'are'}"

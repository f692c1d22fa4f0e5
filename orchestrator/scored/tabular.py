"""Columns of a file by name: only those that are asked for become columns of a table, one value a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from audits.errors import BadInput
from orchestrator.scored.files import Arrays, one_line

ONE_EACH = "a row needs one value of each column"
NO_TABLE = (
    "is no table: needed a list of records, or an object of lists, one a column (pandas: "
    "DataFrame.to_json(PATH, orient='records'))"
)
JOIN = (
    "; join scores of members and scores of non-members that stand in columns of their own: "
    "score = numpy.concatenate([a, b]), member = numpy.repeat([1, 0], [len(a), len(b)])"
)


@dataclass(frozen=True)
class Tabular:
    """A file by columns: their ``names``, how messages show them, and ``pick``, which makes a table of some.

    ``advice``: what messages say where no column is the truth.
    """

    names: Sequence[str]
    shown: Sequence[str]
    pick: Callable[[Sequence[str]], pa.Table] = field(repr=False)
    advice: str = ""

    @property
    def listing(self) -> str:
        """The first columns, as messages show them."""
        return ", ".join(self.shown[:12]) + (", …" if len(self.shown) > 12 else "")


def of_table(table: pa.Table) -> Tabular:
    """Return the columns of a table."""
    return Tabular(table.column_names, table.column_names, table.select)


def of_arrays(arrays: Arrays, path: Path) -> Tabular:
    """Return the arrays of an .npz file as columns; raises BadInput where none can be one."""
    shown = [f"{name} {each.shape}" for name, each in arrays.items()]
    if not any(each.ndim and each.size == max(each.shape) for each in arrays.values()):
        raise BadInput(f"{path} has no vectors of scores; it has {', '.join(shown) or 'nothing'}")
    return Tabular(
        list(arrays),
        shown,
        lambda wanted: table_of({name: column_of_array(arrays[name], name, path) for name in wanted}, path),
        joining(each.size for each in arrays.values()),
    )


def of_json(value: Any, path: Path) -> Tabular:
    """Return the columns of a list of records, or of an object of lists; a key that a record lacks is missing there."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        names = list(dict.fromkeys(name for row in value for name in row))
        return Tabular(names, names, _picker(lambda name: [row.get(name) for row in value], path))
    if isinstance(value, dict):
        columns = {name: each for name, each in value.items() if isinstance(each, list)}
        if columns:
            shown = [f"{name} ({len(each)} values)" for name, each in columns.items()]
            pick = _picker(columns.__getitem__, path)
            return Tabular(list(columns), shown, pick, joining(map(len, columns.values())))
    raise BadInput(f"{path} {NO_TABLE}")


def _picker(column: Callable[[str], list[Any]], path: Path) -> Callable[[Sequence[str]], pa.Table]:
    """Return what makes a table of named lists."""
    return lambda wanted: table_of({name: column_of_list(column(name), name, path) for name in wanted}, path)


def joining(sizes: Iterable[int]) -> str:
    """Return how lists of members and of non-members become one column, "" where all columns have one length."""
    return JOIN if len(set(sizes)) > 1 else ""


def table_of(columns: Mapping[str, pa.Array], path: Path) -> pa.Table:
    """Return columns as a table; raises BadInput unless they have one length."""
    if len({len(each) for each in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(each)}" for name, each in columns.items())
        raise BadInput(f"{path} has columns of several lengths ({lengths}); {ONE_EACH}")
    return pa.table(dict(columns))


def vector(array: NDArray[Any], name: str, path: Path) -> NDArray[Any]:
    """Return an array of shape (n,), (n, 1) or (1, n) as (n,); raises BadInput for any other shape."""
    if not array.ndim or array.size != max(array.shape):
        raise BadInput(f"{path}: array {name!r} has shape {array.shape}; a column has shape (n,): {ONE_EACH}")
    return array.reshape(-1)


def column_of_array(array: NDArray[Any], name: str, path: Path) -> pa.Array:
    """Return an array as a column; raises BadInput for one that is none by shape or dtype."""
    flat = vector(array, name, path)
    try:
        if flat.dtype.kind in "US":  # of which Arrow would cut what stands behind a zero byte
            return pa.array(flat.tolist())
        return pa.array(flat.astype(flat.dtype.newbyteorder("="), copy=False))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadInput(
            f"{path}: array {name!r} of dtype {array.dtype} cannot be read as a column: {one_line(error)}"
        ) from None


def column_of_list(values: list[Any], name: str, path: Path) -> pa.Array:
    """Return a list of a JSON file as a column of text, numbers as they are written; lists are flat, (n, 1) or (1, n).

    Raises BadInput for other lists, and objects, in place of values.
    """
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    return pa.array(_texts(values, name, path), pa.string())


def _texts(values: list[Any], name: str, path: Path) -> Iterator[str | None]:
    for row, value in enumerate(values, 1):
        alone = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(alone, list | dict):
            kind = f"a list of {len(alone)} values" if isinstance(alone, list) else "an object"
            raise BadInput(f"{path}: column {name!r} holds {kind} in row {row}; {ONE_EACH}")
        yield str(alone) if isinstance(alone, bool) else alone

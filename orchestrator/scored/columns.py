"""Columns of a table as scores, membership, names of targets and points; what is none is refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput

YES = ("1", "true", "yes", "member", "in", "train")
NO = ("0", "false", "no", "non-member", "nonmember", "non_member", "non member", "out", "test")
ALLOWED = "0/1, true/false, yes/no, member/non-member, in/out or train/test"
MOST_SHOWN = 5


@dataclass(frozen=True)
class Part:
    """One table and what its columns are; ``scores`` and ``decisions``: attack → column."""

    table: pa.Table = field(repr=False)
    file: str
    member: str
    scores: Mapping[str, str]
    group: str = ""
    point: str = ""
    decisions: Mapping[str, str] = field(default_factory=dict)
    higher_is_member: bool = True


@dataclass(frozen=True)
class Names:
    """Names as numbers (n,) int64; ``words`` by number, None where numbers stand for themselves."""

    codes: NDArray[np.int64] = field(repr=False)
    words: tuple[str, ...] | None = None

    def written(self, codes: NDArray[Any]) -> pa.Array:
        """Return a column of the names of ``codes``."""
        if self.words is None:
            return pa.array(codes)
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(self.words, pa.string())).cast(pa.string())

    def word(self, code: int) -> str:
        """Return one name."""
        return str(code) if self.words is None else self.words[code]


def column_of(part: Part, name: str) -> pa.Array:
    """Return a column in one piece, dictionaries as plain values."""
    found = part.table[name].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
    return found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found


def membership(part: Part, name: str, what: str = "membership") -> tuple[Bools, Bools]:
    """Return the truth of a boolean-like column (n,), and where it is missing (n,)."""
    column = column_of(part, name)
    missing = np.asarray(column.is_null())
    if pa.types.is_boolean(column.type):
        return np.asarray(column.fill_null(False)), missing
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = np.asarray(column.fill_null(0), dtype=np.float64)
        missing = missing | np.isnan(values)
        odd = np.unique(values[~missing & (values != 0) & (values != 1)])
        refuse_words(part, name, what, [f"{value:g}" for value in odd])
        return values == 1, missing
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise BadInput(f"{part.file}: column {name!r} is of type {column.type}; {what} is written as {ALLOWED}")
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column)).dictionary_encode()
    named = words.dictionary.to_pylist()
    refuse_words(part, name, what, [repr(word) for word in named if word not in (*YES, *NO, "")])
    truth = np.array([word in YES for word in named] or [False])
    empty = np.array([word == "" for word in named] or [False])
    codes = np.asarray(words.indices.fill_null(0))
    return truth[codes], missing | empty[codes]


def refuse_words(part: Part, name: str, what: str, odd: list[str]) -> None:
    """Raise BadInput for values that do not say yes or no."""
    if odd:
        more = f" and {len(odd) - MOST_SHOWN} others" if len(odd) > MOST_SHOWN else ""
        shown = ", ".join(odd[:MOST_SHOWN])
        raise BadInput(f"{part.file}: column {name!r} holds {shown}{more}; {what} is written as {ALLOWED}")


def numbers(part: Part, name: str) -> Floats:
    """Return a column of scores (n,) float64, NaN where one is missing; raises BadInput for text and objects."""
    column = column_of(part, name)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        row, text = next(
            ((row, text) for row, text in enumerate(column.to_pylist(), 1) if text is not None and not is_number(text)),
            (1, ""),
        )
        raise BadInput(
            f"{part.file}: column {name!r} holds text, {text!r} in row {row}; scores are numbers; "
            "name another column with --score"
        )
    elif pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise BadInput(f"{part.file}: column {name!r} is of type {kind}; scores are numbers")
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def is_number(text: str) -> bool:
    """Say whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def names(part: Part, name: str) -> tuple[Names, Bools]:
    """Return the names of a column, of targets or points, and where they are missing (n,)."""
    column = column_of(part, name)
    missing = np.asarray(column.is_null())
    kind = column.type
    if pa.types.is_integer(kind):
        return Names(np.asarray(column.fill_null(0)).astype(np.int64)), missing
    try:
        encoded = column.cast(pa.string()).dictionary_encode()
    except pa.ArrowException:
        raise BadInput(f"{part.file}: column {name!r} is of type {kind}; names are text or whole numbers") from None
    words = encoded.dictionary.to_pylist()
    order = np.argsort(np.array(words, dtype=str)) if words else np.zeros(0, np.int64)
    rank = np.empty(len(words), dtype=np.int64)
    rank[order] = np.arange(len(words))
    codes = np.asarray(encoded.indices.fill_null(0))
    return Names(rank[codes] if words else codes.astype(np.int64), tuple(words[place] for place in order)), missing

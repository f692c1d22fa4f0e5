"""Columns of a table as scores, membership, names of targets and points; what is none is refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audits.arrays import Bools, Floats
from audits.data.membership_words import ALLOWED, membership_of
from audits.errors import BadInput

MOST_SHOWN = 5
TRUTH = {"true": 1.0, "false": 0.0}
MISSING = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "#N/A", "#NA",
           "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")  # fmt: skip
"""What marks a missing number or membership in text; a name may be written so."""


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


def column_of(table: pa.Table, name: str, file: str) -> pa.Array:
    """Return a column in one piece: dictionaries as their values, bytes as the text that they are in UTF-8.

    Lists of one value are that value. ``file``: how messages call the table. Raises BadInput for bytes that are no
    text.
    """
    found = table[name].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if _is_list(found.type) and pc.all(pc.equal(pc.list_value_length(found), 1)).as_py() and not found.null_count:
        found = pc.list_flatten(found)
    if pa.types.is_null(found.type):
        return found.cast(pa.string())
    if not is_text(found.type):
        return found
    try:
        text = found.cast(pa.large_string())
        text.validate(full=True)
    except (pa.ArrowException, UnicodeDecodeError):
        raise BadInput(
            f"{file}: column {name!r} is of type {found.type} and holds bytes that are not UTF-8; write names as text "
            "(bytes: decode them, for example with .decode('latin-1'))"
        ) from None
    return text


def is_text(kind: pa.DataType) -> bool:
    """Say whether values of a type are text, or bytes that may be."""
    tests = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in tests)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def membership(part: Part, name: str, what: str = "membership") -> tuple[Bools, Bools]:
    """Return the truth of a boolean-like column (n,), and where it is missing (n,)."""
    column = column_of(part.table, name, part.file)
    missing = np.asarray(column.is_null())
    if pa.types.is_boolean(column.type):
        return np.asarray(column.fill_null(False)), missing
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = np.asarray(column.fill_null(0), dtype=np.float64)
        missing = missing | np.isnan(values)
        odd = np.unique(values[~missing & (values != 0) & (values != 1)])
        refuse_words(part, name, what, [f"{value:g}" for value in odd])
        return values == 1, missing
    if not is_text(column.type):
        raise BadInput(f"{part.file}: column {name!r} is of type {column.type}; {what} is written as {ALLOWED}")
    words = without_marks(column).dictionary_encode()
    said = {word: truth_of(word) for word in words.dictionary.to_pylist()}
    refuse_words(part, name, what, [repr(word) for word, truth in said.items() if truth is None])
    truth = np.array(list(said.values()) or [False], dtype=bool)
    return truth[np.asarray(words.indices.fill_null(0))], np.asarray(words.indices.is_null())


def truth_of(word: str) -> bool | None:
    """Return whether a word says yes or no, None for neither; 1.0 and 0.0 do, as a table with gaps writes them."""
    said = membership_of(word)
    if said is not None:
        return said
    number = number_of(word)
    return bool(number) if number in (0.0, 1.0) else None


def refuse_words(part: Part, name: str, what: str, odd: list[str]) -> None:
    """Raise BadInput for values that do not say yes or no."""
    if odd:
        more = f" and {len(odd) - MOST_SHOWN} others" if len(odd) > MOST_SHOWN else ""
        shown = ", ".join(odd[:MOST_SHOWN])
        raise BadInput(f"{part.file}: column {name!r} holds {shown}{more}; {what} is written as {ALLOWED}")


def numbers(part: Part, name: str) -> Floats:
    """Return a column of scores (n,) float64, NaN where one is missing; raises BadInput for words and objects."""
    column = column_of(part.table, name, part.file)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        column = column.cast(pa.float64())
    elif is_text(kind):
        column = numbers_of_text(part, name, without_marks(column))
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise BadInput(f"{part.file}: column {name!r} is of type {kind}; scores are numbers")
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def without_marks(column: pa.Array) -> pa.Array:
    """Return text without the spaces around it, null where it marks a missing value."""
    trimmed = pc.utf8_trim_whitespace(column)
    marked = pc.is_in(trimmed, value_set=pa.array(MISSING, trimmed.type))
    return pc.if_else(marked, pa.scalar(None, trimmed.type), trimmed)


def numbers_of_text(part: Part, name: str, column: pa.Array) -> pa.Array:
    """Return text as float64; raises BadInput for what is no number."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        words = column.dictionary_encode()
    values = [number_of(word) for word in words.dictionary.to_pylist()]
    if None in values:
        place = values.index(None)
        row = pc.index(words.indices, place).as_py() + 1
        raise BadInput(
            f"{part.file}: column {name!r} holds text, {words.dictionary[place].as_py()!r} in row {row}; scores are "
            "numbers; name another column with --score"
        )
    return pa.array(values, pa.float64()).take(words.indices)


def number_of(word: str) -> float | None:
    """Return the number that a word is, of true and false 1 and 0, None for none."""
    try:
        return TRUTH[word.lower()] if word.lower() in TRUTH else float(pa.scalar(word).cast(pa.float64()).as_py())
    except pa.ArrowException:
        return None

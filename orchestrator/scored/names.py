"""Names of targets and points: text in whatever way they come in, so that no two distinct names become one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from audits.arrays import Bools
from audits.errors import BadInput
from orchestrator.scored.columns import Part, column_of, is_text

SHORT = "^-?[0-9]{1,18}$"
LONG = "^-?[0-9]{19,}$"


@dataclass(frozen=True)
class Names:
    """Names by number, ``codes`` (n,) int64; ``words`` (text) are distinct, in their natural order."""

    codes: NDArray[np.int64] = field(repr=False)
    words: pa.Array = field(repr=False)

    def written(self, codes: NDArray[Any]) -> pa.Array:
        """Return a column of the names of ``codes``."""
        return self.words.take(pa.array(codes)).cast(pa.string())

    def word(self, code: int) -> str:
        """Return one name."""
        return str(self.words[code].as_py())


def names(part: Part, name: str) -> tuple[Names, Bools]:
    """Return the names of a column, of targets or points, and where they are missing (n,): empty, null or NaN.

    Raises BadInput for names with a zero byte, which text files and arrays cannot hold.
    """
    text = text_of_names(column_of(part.table, name, part.file), f"{part.file}: column {name!r}")
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    if pc.any(pc.match_substring(text, "\0")).as_py():
        raise BadInput(
            f"{part.file}: column {name!r} has names with zero bytes, which not every kind of file can hold; write "
            "names without them"
        )
    return encoded(text), np.asarray(text.is_null())


def encoded(text: pa.Array) -> Names:
    """Return text as names; where it is null the number means nothing."""
    found = text.cast(pa.large_string()).dictionary_encode()
    order = natural_order(found.dictionary)
    if not order.size:
        return Names(np.zeros(len(text), np.int64), pa.array([""], pa.large_string()))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return Names(rank[np.asarray(found.indices.fill_null(0))], found.dictionary.take(pa.array(order)))


def text_of_names(column: pa.Array, what: str) -> pa.Array:
    """Return names as text: whole numbers as their digits, other numbers, dates and truth as they are usually written.

    ``what``: how messages call the column. Raises BadInput for values that are no names, and for numbers that the file
    cannot tell apart.
    """
    kind = column.type
    if is_text(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.large_string())
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "True", "False").cast(pa.large_string())
    if pa.types.is_floating(kind):
        return _text_of_floats(column, what)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise BadInput(f"{what} is of type {kind}; names are text or whole numbers")
    try:
        return column.cast(pa.large_string())
    except pa.ArrowException:
        raise BadInput(f"{what} is of type {kind}, which cannot be written as text; names are text") from None


def _text_of_floats(column: pa.Array, what: str) -> pa.Array:
    values = column.to_numpy(zero_copy_only=False)
    missing = np.isnan(values)
    largest = 2 ** (np.finfo(values.dtype).nmant + 1)
    far = ~missing & (np.abs(values) >= largest)
    if far.any():
        row = int(np.argmax(far))
        raise BadInput(
            f"{what} is of type {column.type}, which cannot tell whole numbers from {largest} on apart, and holds "
            f"{values[row]} in row {row + 1}: different names may have become one; write names as text or int64"
        )
    words = values.astype(str).astype(object)
    words[missing] = None
    return pa.array(words, pa.large_string())


def natural_order(words: pa.Array) -> NDArray[np.int64]:
    """Return the places of distinct words in order: whole numbers by their value, then other words by their text."""
    places = np.empty(len(words), np.int64)
    places[np.asarray(pc.sort_indices(words))] = np.arange(len(words))
    short, long = (np.asarray(pc.match_substring_regex(words, pattern)) for pattern in (SHORT, LONG))
    values = np.zeros(len(words), np.int64)
    values[short] = np.asarray(words.filter(pa.array(short)).cast(pa.int64()))
    sign = np.where(np.asarray(pc.starts_with(words, "-")), -1, 1)
    values = np.where(long, sign * np.asarray(pc.binary_length(words)), values)
    kinds = np.select([long & (sign < 0), short, long], [0, 1, 2], 3)
    return np.lexsort((np.where(long, sign, 1) * places, values, kinds))


def is_whole(word: str) -> bool:
    """Say whether a name is a whole number."""
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit()

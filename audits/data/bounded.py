"""Files that could unpack to more than there is room for: refused before memory is taken.

A kilobyte can stand for gigabytes: zeros that are compressed, one value in a million rows, a heading that promises more
than follows, a list within a list within a list.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from audits.data.lfs_pointers import check_fetched
from audits.data.regular import opened
from audits.errors import BadInput
from audits.memory import of_machine
from audits.plain_json import from_json

if TYPE_CHECKING:
    import pyarrow as pa

SHARE = 0.5
"""Of a machine's memory: what one file may take."""
ADVICE = "is it what it should be? if so, cut it into parts, or use a machine with more memory"
LARGEST_JSON = 2**30
ROWS_AT_ONCE = 2**16
ROWS_OF_TEXT = 2**11
ROWS_OF_LISTS = 2**8
BYTES_AT_ONCE = 2**25
"""Rows of a Parquet file that are read together before they are counted; fewer where a row has texts, which may each be
another one, or lists, whose length nothing says, and of wide rows as many as take so many bytes."""


def room() -> int:
    """Return how many bytes a file may take in memory on this machine."""
    return int(SHARE * of_machine())


def too_large(what: str, most: int, advice: str) -> BadInput:
    """Return the error of a file that takes more than ``most`` bytes; ``what``: how messages call it."""
    return BadInput(f"{what} takes more than {most / 2**30:,.3g} GiB of memory; {advice}")


def json_within(path: Path, what: str, most: int = LARGEST_JSON) -> Any:
    """Return the value of a JSON file in UTF-8.

    Raises BadInput for a file of more than ``most`` bytes, or that is no JSON; OSError where it cannot be read.
    """
    check_fetched(path, what)
    if path.stat().st_size > most:
        raise too_large(what, most, ADVICE)
    try:
        return from_json(path.read_bytes())
    except ValueError as error:
        raise BadInput(f"{what} cannot be read as JSON: {error}") from None


def table_within(
    file: Path | bytes,
    what: str,
    columns: Sequence[str] | None = None,
    most: int | None = None,
    taken: int = 0,
    advice: str = ADVICE,
) -> pa.Table:
    """Return the rows of a Parquet file, or of the bytes of one, or some of its columns.

    What a file says of its own size is no bound, since a value that is written once can stand in any number of rows. So
    texts and bytes are read as dictionaries, each value once, and are counted before they are unpacked. Raises BadInput
    where they and the bytes that are ``taken`` already are more than ``most`` (default: ``room``), and what pyarrow
    raises.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_fetched(file, what)
    limit = room() if most is None else most
    size, batches, dictionaries = taken, [], dict[int, Any]()
    with source_of(file) as source, pq.ParquetFile(source) as known:
        schema, wanted, rows = known.schema_arrow, written_once(known), rows_at_once(known, limit)
    if not rows:
        raise too_large(what, limit, advice)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns], schema.metadata)
    with source_of(file) as source, pq.ParquetFile(source, read_dictionary=wanted) as parts:
        for group in range(parts.num_row_groups):  # a group has dictionaries of its own, which no nested array can mix
            for batch in parts.iter_batches(min(rows, ROWS_OF_TEXT) if wanted else rows, [group], columns):
                found = batch if columns is None else batch.select(schema.names)
                pairs = zip(found.columns, schema.types, strict=True)
                whole = [once(each, kind, dictionaries, number) for number, (each, kind) in enumerate(pairs)]
                found = pa.RecordBatch.from_arrays([each for each, _ in whole], schema=found.schema)
                size += sum(map(unpacked_bytes, found.columns, schema.types)) - sum(shared for _, shared in whole)
                if size > limit:
                    raise too_large(what, limit, advice)
                batches.append(pa.Table.from_batches([found]).cast(schema))
    return pa.concat_tables(batches).combine_chunks() if batches else schema.empty_table()


def columns_of(file: Path) -> list[str]:
    """Return the names of the columns of a Parquet file; raises what pyarrow and ``opened`` raise."""
    import pyarrow.parquet as pq

    with opened(file) as source:
        return list(pq.read_schema(source).names)


def source_of(file: Path | bytes) -> BinaryIO:
    """Return a file, or the bytes of one, opened for pyarrow, which takes many a name for an address."""
    return io.BytesIO(file) if isinstance(file, bytes) else opened(file)


def rows_at_once(file: Any, most: int) -> int:
    """Return how many rows of a ``ParquetFile`` to read before they are counted; 0 where ``most`` bytes hold none."""
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    width = sum(leaf.length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else 8 for leaf in leaves)
    if width > most:
        return 0
    lists = any(leaf.max_repetition_level for leaf in leaves)
    return max(1, min(ROWS_OF_LISTS if lists else ROWS_AT_ONCE, min(BYTES_AT_ONCE, most) // max(width, 1)))


def written_once(file: Any) -> list[str]:
    """Return the paths of the columns of a ``ParquetFile`` that hold texts or bytes and can be read as dictionaries."""
    import pyarrow as pa

    def unpacks(kind: Any) -> bool:
        if pa.types.is_map(kind):  # whose parts cannot be cast one by one
            return False
        if pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType):
            return all(unpacks(kind.field(number).type) for number in range(kind.num_fields))
        return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()) or pa.types.is_primitive(kind)

    names = {field.name for field in file.schema_arrow if unpacks(field.type)}
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    return [path for path in texts if any(path == name or path.startswith(f"{name}.") for name in names)]


def once(values: Any, kind: Any, dictionaries: dict[int, Any], column: int) -> tuple[Any, int]:
    """Return an array with the dictionary that its ``column`` had before in the place of an equal one, which goes.

    pyarrow gives each batch a copy of that of its row group. Only an array that stays a dictionary, by its ``kind``, is
    changed. Also returns how many bytes are counted already; ``dictionaries`` holds the latest of each column.
    """
    import pyarrow as pa

    if not (pa.types.is_dictionary(values.type) and pa.types.is_dictionary(kind)):
        return values, 0
    own, former = values.dictionary, dictionaries.get(column)
    if former is None or not former.equals(own):
        dictionaries[column] = own
        return values, 0
    return pa.DictionaryArray.from_arrays(values.indices, former, ordered=kind.ordered), int(former.nbytes)


def unpacked_bytes(values: Any, kind: Any) -> int:
    """Return how many bytes an array takes once its dictionaries are unpacked, but for those that are of its ``kind``.

    ``kind``: the type that it will have.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type) and not pa.types.is_dictionary(kind):
        lengths = pc.binary_length(values.dictionary).cast(pa.int64())
        return int(values.indices.nbytes + (pc.sum(lengths.take(values.indices)).as_py() or 0))
    if pa.types.is_struct(values.type):
        parts = zip(values.flatten(), [kind.field(number).type for number in range(kind.num_fields)], strict=True)
        return sum(unpacked_bytes(part, of_part) for part, of_part in parts)
    if pa.types.is_nested(values.type) and not pa.types.is_map(values.type) and kind.num_fields == 1:
        return 4 * len(values) + unpacked_bytes(values.flatten(), kind.field(0).type)
    return int(values.nbytes)


def arrays_within(path: Path, what: str, most: int | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by name.

    Raises BadInput for pickled objects, for more than ``most`` bytes (default: ``room``), before they are unpacked, and
    for a heading that promises more than memory holds; TypeError for an .npy file, and what NumPy and zipfile raise.
    """
    check_fetched(path, what)
    limit = room() if most is None else most
    with np.load(path, allow_pickle=False) as file:
        if sum(entry.file_size for entry in file.zip.infolist()) > limit:
            raise too_large(what, limit, ADVICE)
        found = {}
        for name in file.files:
            with promised(f"{what}: array {name!r}"):
                try:
                    found[name] = file[name]
                except ValueError as error:
                    if "allow_pickle" not in str(error):
                        raise
                    raise BadInput(
                        f"{what}: array {name!r} holds Python objects, which are never unpickled; save it as numbers "
                        "or text"
                    ) from None
        return found


def array_within(path: Path, what: str) -> NDArray[Any]:
    """Return the array of an .npy file; raises BadInput for a heading that promises more than memory holds."""
    check_fetched(path, what)
    with opened(path) as file, promised(what):
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return found


@contextmanager
def promised(what: str) -> Iterator[None]:
    """Refuse an array whose heading promises more than there is memory for; no byte of it is read then."""
    try:
        yield
    except (MemoryError, OverflowError) as error:
        said = str(error).strip() or "it does not fit into memory"
        raise BadInput(f"{what} cannot be read: {said}; is the file what it should be?") from None

"""Files that could unpack to more than there is room for: refused before memory is taken.

A kilobyte can stand for gigabytes: zeros that are compressed, one value in a million rows, a heading that promises more
than follows, a list within a list within a list.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
BATCH_BYTES = 2**28


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
    source: Any,
    what: str,
    columns: Sequence[str] | None = None,
    most: int | None = None,
    taken: int = 0,
    advice: str = ADVICE,
) -> pa.Table:
    """Return the rows of a Parquet file: of a path, a file, or an open ``ParquetFile``, which is closed then.

    What a file says of its own size is no bound, since a value that is written once can stand in any number of rows;
    so rows are counted as they are read. Raises BadInput where they and the bytes that are ``taken`` already are more
    than ``most`` (default: ``room``), and what pyarrow raises.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(source, Path):
        check_fetched(source, what)
    limit = room() if most is None else most
    size, batches = taken, []
    with source if isinstance(source, pq.ParquetFile) else pq.ParquetFile(source) as file:
        for batch in file.iter_batches(rows_at_once(file), columns=columns):
            size += batch.nbytes
            if size > limit:
                raise too_large(what, limit, advice)
            batches.append(batch)
        schema = file.schema_arrow
    if columns is not None:
        schema = batches[0].schema if batches else pa.schema([schema.field(name) for name in columns], schema.metadata)
    return pa.Table.from_batches(batches, schema).combine_chunks()


def rows_at_once(file: Any) -> int:
    """Return of how many rows of a ``ParquetFile`` no batch takes more than a bounded part of memory."""
    meta = file.metadata
    places = itertools.product(range(meta.num_row_groups), range(meta.num_columns))
    chunks = [meta.row_group(group).column(column) for group, column in places]
    longest = max((chunk.total_uncompressed_size for chunk in chunks if "BYTE_ARRAY" in chunk.physical_type), default=1)
    return max(1, min(ROWS_AT_ONCE, BATCH_BYTES // max(1, longest)))


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

"""Data sets as Parquet shards: raw bytes of one point and its label a row, everything else in the schema's metadata."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.addresses import FILE_SYSTEMS
from audits.credentials import hide, mask, reveal
from audits.data.bounded import table_within
from audits.data.dataset import Dataset, Description, fingerprint
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput, did_you_mean
from audits.own.libraries import opened_elsewhere
from audits.plain_json import from_json
from audits.writing import write_whole

if TYPE_CHECKING:
    from pyarrow import Schema, Table
    from pyarrow.fs import FileSystem

METADATA_KEY = b"orch.shard/1"
ROWS_PER_GROUP = 8192
POINTS_PER_SHARD = 65_536
WIDEST = 2**31 - 1
"""Bytes of a point, at most: Parquet and Arrow hold no wider ones."""


@dataclass(frozen=True)
class Header:
    """Facts about the whole data set that every shard holds."""

    points: int
    shape: tuple[int, ...]
    dtype: str
    classes: tuple[str, ...]
    value_range: tuple[float, float] | None
    fingerprint: str

    @staticmethod
    def of(dataset: Dataset) -> Header:
        """Return the header of ``dataset``; images in files are decoded for the fingerprint of their pixels."""
        content = dataset.contents
        if not dataset.in_memory:
            content = fingerprint(dataset.inputs, dataset.labels, dataset.classes, dataset.value_range)
        return Header(
            len(dataset), dataset.shape, dataset.inputs.dtype.str, dataset.classes, dataset.value_range, content
        )

    @staticmethod
    def read(schema: Schema, place: str) -> Header:
        """Return the header in a shard's schema; BadInput when it is no shard of ours."""
        text = (schema.metadata or {}).get(METADATA_KEY)
        if text is None:
            raise BadInput(
                f"{place} is a Parquet file, but not one that 'orch data shard' wrote; read it as table:PATH"
            )
        try:
            fields: dict[str, Any] = from_json(text)
            bounds, dtype = fields["value_range"], np.dtype(str(fields["dtype"]))
            if dtype.kind not in "biuf":
                raise TypeError(f"points of {dtype}")
            header = Header(
                points=int(fields["points"]),
                shape=tuple(map(int, fields["shape"])),
                dtype=dtype.str,
                classes=tuple(map(str, fields["classes"])),
                value_range=None if bounds is None else (float(bounds[0]), float(bounds[1])),
                fingerprint=str(fields["fingerprint"]),
            )
            if min(header.shape, default=1) < 1 or header.width > WIDEST:
                raise ValueError(f"points of shape {header.shape}")
            return header
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise BadInput(f"{place} is no shard that 'orch data shard' wrote ({_first_line(error)})") from None

    @property
    def width(self) -> int:
        """The bytes of one point."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def pack(
    dataset: Dataset, rows: slice = slice(None), *, compression_level: int = 3, header: Header | None = None
) -> bytes:
    """Return one Parquet file (zstd) with ``rows`` of ``dataset``; the same rows give the same bytes.

    ``header`` is that of ``dataset``, made here when it is not given.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    inputs = np.ascontiguousarray(dataset.inputs[rows])
    width = math.prod(dataset.shape) * dataset.inputs.dtype.itemsize
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(inputs), [None, pa.py_buffer(inputs)])
    text = json.dumps(vars(header or Header.of(dataset)), sort_keys=True).encode()
    schema = pa.schema([("input", pa.binary(width)), ("label", pa.int64())], metadata={METADATA_KEY: text})
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays([values, pa.array(dataset.labels[rows])], schema=schema),
        sink,
        row_group_size=ROWS_PER_GROUP,
        compression="zstd",
        compression_level=compression_level,
        use_dictionary=False,
    )
    return sink.getvalue()


def unpack(name: str, files: list[bytes], place: str) -> Dataset:
    """Return the data set whose shards, in order, are ``files``; BadInput when any is damaged or missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables: list[Table] = []
    try:
        headers = {Header.read(pq.read_schema(io.BytesIO(file)), place) for file in files}
        if len(headers) != 1:
            raise BadInput(f"{place} holds shards of {len(headers)} data sets; give each its own folder")
        header = headers.pop()
        for file in files:
            tables.append(table_within(file, place, ["input", "label"], taken=sum(table.nbytes for table in tables)))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise BadInput(f"{place} cannot be read: {_first_line(error)}") from error
    expected = pa.schema([("input", pa.binary(header.width)), ("label", pa.int64())])
    if not all(
        table.schema.equals(expected) and not any(column.null_count for column in table.columns) for table in tables
    ):
        raise BadInput(
            f"{place}: its columns are not those of points of {header.dtype} {header.shape}; write the shards again"
        )
    inputs = np.concatenate([_inputs(table, header) for table in tables])
    labels = np.concatenate([table["label"].to_numpy() for table in tables])
    found = fingerprint(inputs, labels, header.classes, header.value_range)
    if found != header.fingerprint:
        raise BadInput(
            f"{place}: {len(inputs)} of {header.points} points, fingerprint {found[:12]} instead of "
            f"{header.fingerprint[:12]}; shards are damaged or missing: write them again"
        )
    return Dataset(name, inputs, labels, header.classes, header.value_range, found)


def write_shards(dataset: Dataset, uri: str, *, points_per_shard: int = POINTS_PER_SHARD) -> list[str]:
    """Write ``dataset``, without its groups, as ``part-00000.parquet``, ... into the folder ``uri``; return the paths.

    ``uri`` is a local path or an address of one of ``FILE_SYSTEMS``. BadInput when the folder already holds
    Parquet files (they would mix) or cannot be written.
    """
    import pyarrow as pa
    from pyarrow.fs import LocalFileSystem

    uri = mask(uri)
    filesystem, folder = file_system(uri)
    if _parquet_files(filesystem, folder):
        raise BadInput(
            f"{uri} already holds Parquet files, maybe of a set whose writing ended early; name an empty folder"
        )
    paths = []
    header = Header.of(dataset)
    try:
        filesystem.create_dir(folder, recursive=True)
        for number, start in enumerate(range(0, len(dataset), points_per_shard)):
            path = f"{folder}/part-{number:05d}.parquet"
            content = pack(dataset, slice(start, start + points_per_shard), header=header)
            if isinstance(filesystem, LocalFileSystem):
                write_whole(Path(path), content)
            else:
                with filesystem.open_output_stream(path) as stream:
                    stream.write(content)
            paths.append(path)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{uri} cannot be written: {_first_line(error)}") from error
    return paths


def read_shards(name: str, uri: str) -> Dataset:
    """Return the data set in the Parquet file, or in the folder of Parquet files, at ``uri``."""
    uri = mask(uri)
    filesystem, place = file_system(uri)
    files = []
    for path in _parquet_files(filesystem, place):
        with filesystem.open_input_stream(path) as stream:
            files.append(stream.read())
    if not files:
        raise BadInput(f"no Parquet file at {uri}")
    return unpack(name, files, uri)


def file_system(uri: str) -> tuple[FileSystem, str]:
    """Return the pyarrow file system of a local path or an address (``s3://bucket/folder``), and the path on it."""
    import pyarrow as pa
    from pyarrow import fs

    scheme = uri.partition("://")[0] if "://" in uri else "file"
    if scheme not in FILE_SYSTEMS:
        raise BadInput(
            f"{uri!r} is no usable place: no file system is called {scheme!r}{did_you_mean(scheme, FILE_SYSTEMS)}; "
            f"give a local path or an address such as s3://bucket/folder (schemes: {', '.join(FILE_SYSTEMS)})"
        )
    try:
        if "://" in uri:
            filesystem, path = opened_elsewhere(reveal(uri))
            return filesystem, path.rstrip("/")
        return fs.LocalFileSystem(), fs.LocalFileSystem().normalize_path(uri).rstrip("/")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadInput(f"{uri!r} is no usable place: {_first_line(error)}") from error


def _parquet_files(filesystem: FileSystem, place: str) -> list[str]:
    from pyarrow import fs

    try:
        info = filesystem.get_file_info(place)
        if info.type == fs.FileType.File:
            return [place]
        if info.type == fs.FileType.NotFound:
            return []
        found = filesystem.get_file_info(fs.FileSelector(place))
    except OSError as error:
        raise BadInput(f"{place} cannot be read: {_first_line(error)}") from error
    return sorted(entry.path for entry in found if entry.is_file and entry.extension == "parquet")


def _inputs(table: Table, header: Header) -> npt.NDArray[Any]:
    column = table["input"].combine_chunks()
    width = column.type.byte_width
    start = column.offset * width
    content = np.frombuffer(column.buffers()[1], dtype=np.uint8)[start : start + len(column) * width]
    return content.view(header.dtype).reshape(len(column), *header.shape)


def _first_line(error: Exception) -> str:
    return hide(str(error)).strip().split("\n")[0]


def _uri(request: Request) -> str:
    return request.place if "://" in request.place else str(request.local_path())


def _describe(request: Request) -> Description:
    """Read the metadata of the first shard only."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    request.allow()
    uri = _uri(request)
    filesystem, place = file_system(uri)
    files = _parquet_files(filesystem, place)
    how_to_get = f"write it with 'orch data shard NAME {request.place}'"
    if not files:
        return Description(request.name, 0, (), (), None, [uri], False, "the owner's", how_to_get)
    try:
        header = Header.read(pq.read_schema(files[0], filesystem=filesystem), uri)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{uri} cannot be read: {_first_line(error)}") from error
    return Description(
        request.name, header.points, header.shape, header.classes, header.value_range, [uri], True,
        "the owner's", how_to_get,
    )  # fmt: skip


def _load(request: Request) -> Dataset:
    description = _describe(request)
    if not description.present:
        raise description.missing()
    return read_shards(request.name, _uri(request))


CATALOGUE.register("parquet")(
    Source("parquet:URI", "shards written by 'orch data shard', in a folder or a bucket", _describe, _load)
)

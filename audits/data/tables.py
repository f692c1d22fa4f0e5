"""``table:PATH``: a Parquet file, a folder of Parquet files, or a data set that Hugging Face's ``datasets`` saved.

A row is a point. Inputs are encoded images (bytes, or the struct of ``datasets.Image``), nested lists of numbers, or
all columns of numbers beside the labels but for those that number rows or tell of membership (``features``); labels
are whole numbers or names. Nothing but pyarrow and Pillow reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.data.bounded import json_within, table_within, too_large
from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.features import doubts, features, values_of
from audits.data.ids import number_of
from audits.data.images import MOST_BYTES, decode, header
from audits.data.lfs_pointers import check_fetched
from audits.data.source import CATALOGUE, Request, Source
from audits.data.user import LAYOUT, as_float32, checked, describe
from audits.errors import BadInput, did_you_mean, how_many
from audits.own.code import first_line

if TYPE_CHECKING:
    import pyarrow as pa

INPUTS, LABELS, SIZE, KEEP = "inputs", "labels", "size", "keep"
"""Options: the columns, the side to which images are scaled, and columns that are features whatever their names."""
USUAL_INPUTS = ("image", "img", "images", "inputs", "x", "pixels")
USUAL_LABELS = ("label", "labels", "fine_label", "y", "target")
Likely = Callable[[str], bool]
STATE, SPLITS = "state.json", "dataset_dict.json"
"""Files by which a folder that ``datasets`` saved is known: one data set, several splits."""
ABOUT = b"huggingface"
ADVICE = "keep images in a folder a class (folder:PATH), or cut a larger set with orch data shard"
HOW = "write it with pandas' or datasets' to_parquet, or datasets' save_to_disk"


def read_table(path: Path) -> pa.Table:
    """Return the rows of a file or folder; raises BadInput for what is neither, is damaged, or is too large."""
    import pyarrow as pa

    try:
        if (path / STATE).is_file():
            return saved_by_datasets(path)
        if (path / SPLITS).is_file():
            splits = json_within(path / SPLITS, str(path / SPLITS))["splits"]
            raise BadInput(f"{path} holds several splits; give one of them: table:{path}/{splits[0]}")
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise BadInput(f"{path} holds no .parquet file, and no data set that datasets saved; {HOW}")
        return pa.concat_tables(read_within(files, path))
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} cannot be read as a table ({first_line(error)}); {HOW}") from None


def read_within(files: Sequence[Path], place: Path) -> list[pa.Table]:
    """Return the rows of Parquet files; raises BadInput as soon as they take more memory than tables may."""
    found: list[pa.Table] = []
    for file in files:
        taken = sum(table.nbytes for table in found)
        found.append(table_within(file, str(place), most=MOST_BYTES, taken=taken, advice=ADVICE))
    return found


def saved_by_datasets(path: Path) -> pa.Table:
    """Return the rows of a folder that ``datasets`` saved: its Arrow files, in their order."""
    import pyarrow as pa

    state = json_within(path / STATE, str(path / STATE))
    if state.get("_indices_data_files"):
        raise BadInput(f"{path} is a selection of rows kept apart from them; save it after .flatten_indices()")
    batches, size = [], 0
    for name in (part["filename"] for part in state["_data_files"]):
        file = path / name
        if file.parent != path:
            raise BadInput(f"{path / STATE} names the file {name!r}, which is not in that folder")
        check_fetched(file, str(file))
        with pa.memory_map(str(file)) as source:
            for batch in pa.ipc.open_stream(source):
                batch.validate(full=True)  # offsets of others may lead anywhere in this process's memory
                size += batch.nbytes
                if size > MOST_BYTES:
                    raise too_large(str(path), MOST_BYTES, ADVICE)
                batches.append(pa.Table.from_batches([batch]))
    return pa.concat_tables(batches)


def chosen(request: Request, option: str, usual: Sequence[str], columns: Sequence[str], likely: Likely) -> str | None:
    """Return the column that an option names, else the first usual name of a ``likely`` column, else None."""
    named = request.options.get(option)
    if named is not None and named not in columns:
        raise BadInput(
            f"data set {request.name!r}: {option} is {named!r}{did_you_mean(named, columns)}; "
            f"columns: {', '.join(columns)}"
        )
    return named or next((name for name in usual if name in columns and likely(name)), None)


def label_of(request: Request, schema: pa.Schema) -> str:
    """Return the column of labels: the one that is named, or has a usual name and holds no fractions.

    Raises BadInput where there is none, and where ``y`` may be one as well as ``target``.
    """
    import pyarrow as pa

    def likely(name: str) -> bool:
        return not pa.types.is_floating(schema.field(name).type)

    found = chosen(request, LABELS, USUAL_LABELS, schema.names, likely)
    if found is None:
        raise BadInput(
            f"data set {request.name!r}: no column is called {', '.join(USUAL_LABELS)} and holds whole "
            f"numbers or names; columns: {', '.join(schema.names)}; name it with ?{LABELS}=COLUMN"
        )
    if LABELS not in request.options and found == "y" and "target" in schema.names and likely("target"):
        raise BadInput(
            f"data set {request.name!r}: y and target may both be labels; name the column with ?{LABELS}=COLUMN"
        )
    return found


def may_hold_inputs(kind: pa.DataType) -> bool:
    """Say whether a value of a type may be a whole input: more than one number, bool or text."""
    import pyarrow as pa

    single = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, is_text)
    return not any(is_kind(kind) for is_kind in single)


def labels_of(request: Request, table: pa.Table, column: str) -> tuple[npt.NDArray[np.int64], tuple[str, ...] | None]:
    """Return labels (N,) and the names of the classes, if they have any.

    Those that ``datasets`` noted, or texts in their order; of ordered categories all, in the order that they have.
    """
    import pyarrow as pa

    values = table[column].combine_chunks()
    if values.null_count:
        raise BadInput(f"data set {request.name!r}: {how_many(values.null_count, 'label')} of {len(values)} missing")
    if pa.types.is_dictionary(values.type):
        if values.type.ordered and is_text(values.type.value_type):
            return values.indices.to_numpy(zero_copy_only=False).astype(np.int64), categories(request, table[column])
        values = values.cast(values.type.value_type)
    if is_text(values.type):
        names, found = np.unique(np.asarray(values.to_pylist(), dtype=str), return_inverse=True)
        return found.astype(np.int64), tuple(map(str, names))
    if not pa.types.is_integer(values.type):
        raise BadInput(
            f"data set {request.name!r}: labels ({column}) are {values.type}; needed: whole numbers or names; another "
            f"column is named with ?{LABELS}=COLUMN"
        )
    return values.to_numpy(zero_copy_only=False).astype(np.int64), noted_names(table.schema, column)


def is_text(kind: pa.DataType) -> bool:
    """Say whether values of a type are texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def categories(request: Request, column: pa.ChunkedArray) -> tuple[str, ...]:
    """Return all categories of a column in their order; raises BadInput where its files have them in several."""
    orders = list(dict.fromkeys(tuple(chunk.dictionary.to_pylist()) for chunk in column.chunks))
    if len(orders) > 1:
        raise BadInput(
            f"data set {request.name!r}: its files have the categories of labels in several orders: "
            f"{', '.join(map(str, orders[0][:4]))}, and {', '.join(map(str, orders[1][:4]))}; give all files the same"
        )
    return tuple(map(str, orders[0]))


def unordered_noted(
    name: str, column: pa.ChunkedArray, schema: pa.Schema, label: str, classes: Sequence[str]
) -> tuple[str, ...]:
    """Return a note where pandas has ``classes`` as categories without an order, in another order than their texts'."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or column.type.ordered or not is_text(column.type.value_type):
        return ()
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("columns", [])
    if not any(each.get("name") == label and each.get("pandas_type") == "categorical" for each in about):
        return ()  # whoever else wrote it numbers texts as they come
    found = [str(each) for each in column.combine_chunks().dictionary.to_pylist()]
    if found == list(classes):
        return ()
    return (
        f"warning: {name}: labels are categories without an order, so classes stand in the order of their texts: class "
        f"0 is {classes[0]!r}; order the categories (.cat.as_ordered()) if the model was trained on their codes, where "
        f"it is {found[0]!r}",
    )


def order_noted(name: str, classes: Sequence[str]) -> tuple[str, ...]:
    """Return a note where classes are whole numbers as text, in another order than theirs: 10 before 2."""
    place = next((place for place, each in enumerate(classes) if number_of(each) not in (None, place)), None)
    if place is None or sorted(classes, key=lambda each: number_of(each) or 0) == list(classes):
        return ()
    return (
        f"warning: {name}: labels are texts, in whose order classes stand: class {place} is {classes[place]!r}; write "
        "labels as whole numbers if the model was trained on these",
    )


def noted_names(schema: pa.Schema, column: str) -> tuple[str, ...] | None:
    """Return the names of the classes that ``datasets`` noted in the schema, if it did."""
    try:
        about = json.loads((schema.metadata or {})[ABOUT])["info"]["features"][column]
        return tuple(map(str, about["names"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def inputs_of(request: Request, table: pa.Table, column: str) -> npt.NDArray[Any]:
    """Return the inputs of a column: images (N, C, H, W) uint8, or numbers (N, …)."""
    import pyarrow as pa

    values = table[column].combine_chunks()
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_struct(values.type) and "bytes" in {field.name for field in values.type}:
        values = values.field("bytes")
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type) or pa.types.is_binary_view(values.type):
        return images(request, values.to_pylist())
    if not any(
        is_kind(values.type) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    ):
        raise BadInput(
            f"data set {request.name!r}: inputs ({column}) are {values.type}; needed: encoded images or lists of "
            f"numbers; another column is named with ?{INPUTS}=COLUMN"
        )
    try:
        found = np.asarray(values.to_pylist())
    except (TypeError, ValueError):
        found = np.empty(0, object)
    if found.dtype.kind not in "iufb":
        raise BadInput(
            f"data set {request.name!r}: rows of {column} have several shapes, or hold something else than numbers"
        )
    return as_float32(request.name, found)


def images(request: Request, encoded: Sequence[bytes | None]) -> npt.NDArray[np.uint8]:
    """Return encoded images as (N, C, H, W), scaled to the ``size`` that is asked for, else all of one size."""
    place = request.local_path()
    files = [Path(f"{place} (row {row})") for row in range(len(encoded))]
    if missing := [str(file) for file, content in zip(files, encoded, strict=True) if content is None]:
        raise BadInput(
            f"data set {request.name!r}: {missing[0]} has no bytes of an image, only a path perhaps "
            f"({how_many(len(missing), 'such row')}); save the images themselves (datasets embeds them in save_to_disk)"
        )
    contents = [content for content in encoded if content is not None]
    found = [header(file, content) for file, content in zip(files, contents, strict=True)]
    side = request.whole_number(SIZE, 0)
    if not side and len(sizes := {size for size, _ in found}) > 1:
        shown = ", ".join(f"{width}×{height}" for width, height in sorted(sizes)[:3])
        raise BadInput(f"data set {request.name!r}: images are {shown}, …; have all scaled with ?{SIZE}=N behind it")
    width, height = (side, side) if side else found[0][0]
    shape = (max(channels for _, channels in found), height, width)
    if len(contents) * shape[0] * width * height > MOST_BYTES:
        raise BadInput(
            f"data set {request.name!r}: images take more than {MOST_BYTES / 2**30:.0f} GiB; use folder:PATH"
        )
    return np.stack([decode(file, shape, content) for file, content in zip(files, contents, strict=True)])


def numbers_of(request: Request, table: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return all ``columns`` of numbers as (N, F); large whole numbers are rounded (``features.doubts``)."""
    import pyarrow as pa

    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    other = [name for name in columns if not any(is_kind(table.schema.field(name).type) for is_kind in numeric)]
    if other or not columns:
        raise BadInput(
            f"data set {request.name!r}: no column of images or lists is called {', '.join(USUAL_INPUTS)}, and not all "
            "others are numbers "
            f"({', '.join(other[:3]) or 'there are none'}); name the column with ?{INPUTS}=COLUMN"
        )
    found = (values_of(table, name) for name in columns)
    floats = [as_float32(request.name, each) if each.dtype.kind == "f" else each.astype(np.float32) for each in found]
    return np.stack(floats, axis=1)


def _load(request: Request) -> Dataset:
    request.allow(INPUTS, LABELS, SIZE, LAYOUT, KEEP)
    path = request.local_path()
    if not path.exists():
        raise describe(request, None, HOW).missing()
    table = read_table(path)
    columns: list[str] = table.column_names
    if twice := next((name for name in columns if columns.count(name) > 1), None):
        raise BadInput(f"data set {request.name!r} has several columns called {twice!r}; give each a name of its own")
    label = label_of(request, table.schema)
    labels, names = labels_of(request, table, label)
    given = chosen(request, INPUTS, USUAL_INPUTS, columns, lambda name: may_hold_inputs(table.schema.field(name).type))
    notes = order_noted(request.name, names or ())
    notes += unordered_noted(request.name, table[label], table.schema, label, names or ())
    if given is None:
        kept, left_out = features(request.name, table, label, set(request.options.get(KEEP, "").split(",")) - {""})
        inputs = numbers_of(request, table, kept)
        notes += (*left_out, *doubts(request.name, table, kept, labels))
    else:
        inputs = inputs_of(request, table, given)
    encoded = inputs.dtype == np.uint8
    found = checked(request.name, (inputs, labels), "channels_first" if encoded else request.options.get(LAYOUT))
    found = found if names is None else named(found, names)
    return replace(found, notes=(*found.notes, *notes))


def named(found: Dataset, names: tuple[str, ...]) -> Dataset:
    """Return a data set with the names of its classes; raises BadInput where there are more labels than names."""
    if len(found.classes) > len(names):
        raise BadInput(f"data set {found.name!r}: labels go up to {len(found.classes) - 1}, but {len(names)} are named")
    bounds = IMAGE_RANGE if found.inputs.dtype == np.uint8 else found.value_range
    return Dataset(found.name, found.inputs, found.labels, names, bounds, notes=found.notes)


def _describe(request: Request) -> Description:
    request.allow(INPUTS, LABELS, SIZE, LAYOUT, KEEP)
    return describe(request, _load(request) if request.local_path().exists() else None, HOW)


CATALOGUE.register("table")(
    Source(
        "table:PATH?inputs=COLUMN&labels=COLUMN&size=N&keep=COLUMNS",
        "a Parquet file, or a folder that Hugging Face's datasets saved",
        _describe,
        _load,
    )
)

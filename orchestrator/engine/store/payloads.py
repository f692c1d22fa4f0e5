"""Files of an artefact: safetensors, Parquet and JSON. Nothing is ever unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from audits.plain_json import from_json
from orchestrator.engine.store.faults import CorruptArtefact, one_line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import torch
    from torch import nn

FORMATS = (".safetensors", ".parquet", ".json")


def pack_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return named NumPy arrays (bool, integer or float dtypes, any shape) as safetensors; equal input, equal bytes."""
    import numpy as np
    from safetensors.numpy import save

    return bytes(save({name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}))


def unpack_arrays(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of ``pack_arrays`` by name; raises CorruptArtefact for anything that is not safetensors."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(data))
    except (SafetensorError, KeyError, ValueError) as error:
        raise CorruptArtefact(f"not safetensors ({one_line(error)}); run again with --rebuild") from error


def pack_weights(model: nn.Module) -> bytes:
    """Return a model's parameters and buffers as safetensors; tied weights stand there under each of their names."""
    return pack_tensors(model.state_dict())


def pack_tensors(tensors: Mapping[str, torch.Tensor], said: dict[str, str] | None = None) -> bytes:
    """Return named tensors as safetensors, with the words ``said`` in the file's metadata."""
    from safetensors.torch import save

    state, seen = {}, set[int]()
    for name, tensor in tensors.items():
        whole = tensor.detach().cpu().contiguous()
        place = whole.untyped_storage().data_ptr()
        state[name] = whole.clone() if place in seen else whole
        seen.add(place)
    return bytes(save(state, said))


def unpack_weights(data: bytes) -> dict[str, torch.Tensor]:
    """Return the tensors of ``pack_weights`` by name; raises CorruptArtefact for anything that is not safetensors."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return dict(load(data))
    except (SafetensorError, KeyError, ValueError) as error:
        raise CorruptArtefact(f"not safetensors ({one_line(error)}); run again with --rebuild") from error


def pack_table(table: pa.Table) -> bytes:
    """Return a table as Parquet; tables with equal columns and rows give equal bytes.

    Chunks, slices, dictionaries and the schema's metadata do not matter: metadata is left out and columns of dictionary
    type come back as plain values.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = table.replace_schema_metadata(None)
    for at, column in enumerate(plain.schema):
        if pa.types.is_dictionary(column.type):
            plain = plain.set_column(at, column.name, plain[at].cast(column.type.value_type))
    plain = plain.combine_chunks()
    sink = pa.BufferOutputStream()
    pq.write_table(plain, sink, compression="zstd", version="2.6", row_group_size=1 << 20)
    return bytes(sink.getvalue().to_pybytes())


def unpack_table(data: bytes) -> pa.Table:
    """Return the table of ``pack_table``; raises CorruptArtefact for anything that is not Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowException, OSError) as error:
        raise CorruptArtefact(f"not Parquet ({one_line(error)}); run again with --rebuild") from error


def pack_json(value: Any) -> bytes:
    """Return a JSON value as UTF-8 text; fields are sorted, so equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, indent=1, allow_nan=False).encode() + b"\n"


def unpack_json(data: bytes) -> Any:
    """Return the value of ``pack_json``; raises CorruptArtefact for anything that is not JSON."""
    try:
        return from_json(data)
    except ValueError as error:
        raise CorruptArtefact(f"not JSON ({one_line(error)}); run again with --rebuild") from error


def wrong_format(name: str, data: bytes) -> str | None:
    """Return what is wrong when ``data`` is not of the format that the ending of ``name`` promises, else None."""
    if name.endswith(".safetensors"):
        header = int.from_bytes(data[:8], "little")
        return None if len(data) > 8 and 2 <= header <= len(data) - 8 and data[8:9] == b"{" else "is not safetensors"
    if name.endswith(".parquet"):
        return None if len(data) >= 12 and data[:4] == data[-4:] == b"PAR1" else "is not Parquet"
    if name.endswith(".json"):
        try:
            from_json(data)
        except ValueError:
            return "is not JSON"
        return None
    return f"is no file of an artefact (allowed: {', '.join(FORMATS)})"

"""Keys of artefacts: hashes of everything that decides a result, and what makes two of them differ."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Final

from audits.errors import BadInput

ABSENT: Final = "(absent)"


def artefact_key(stage: str, document: Mapping[str, Any]) -> str:
    """Return the key (32 hex characters) of the artefact of ``stage`` that ``document`` describes.

    ``document`` holds JSON values (tuples and NumPy scalars count as lists and numbers). Equal numbers give equal
    keys (1 and 1.0) and the order of fields does not matter. Raises TypeError for any other value, ValueError for
    a number that is not finite.
    """
    text = json.dumps(
        {"stage": stage, "document": canonical(document, fold_numbers=True)}, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def canonical(value: Any, field: str = "document", *, fold_numbers: bool = False) -> Any:
    """Return ``value`` as plain JSON values; ``fold_numbers`` turns 1.0 into 1. ``field`` is named in errors."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"{field} has the field name {name!r}; names of fields are strings")
        return {name: canonical(item, f"{field}.{name}", fold_numbers=fold_numbers) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(item, f"{field}[{at}]", fold_numbers=fold_numbers) for at, item in enumerate(value)]
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{field} is {number}; keys are made of finite numbers")
        return int(number) if fold_numbers and number.is_integer() else number
    raise TypeError(f"{field} is a {type(value).__name__}; keys are made of JSON values")


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return (path of the field, value in ``a``, value in ``b``) for every field that differs, sorted by path.

    A field that one of them lacks has the value ``ABSENT`` there. Lists of the same length are compared item by item
    (``path[3]``), other lists as a whole.
    """
    return sorted(_differences(a, b, ""), key=lambda row: row[0])


def _differences(a: Any, b: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        prefix = f"{path}." if path else ""
        rows = []
        for name in {**a, **b}:
            rows += _differences(a.get(name, ABSENT), b.get(name, ABSENT), f"{prefix}{name}")
        return rows
    if _is_list(a) and _is_list(b) and len(a) == len(b):
        return [row for at, (x, y) in enumerate(zip(a, b, strict=True)) for row in _differences(x, y, f"{path}[{at}]")]
    same = a == b and isinstance(a, bool) == isinstance(b, bool)
    return [] if same else [(path, a, b)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def digest(array: Any) -> str:
    """Return the sha256 (64 hex characters) of bytes, or of an array's dtype, shape and values.

    ``array`` is bytes, a NumPy array or whatever ``numpy.asarray`` takes; memory layout and byte order do not matter.
    Raises TypeError for arrays of Python objects.
    """
    if isinstance(array, bytes | bytearray | memoryview):
        return hashlib.sha256(b"bytes\0" + bytes(array)).hexdigest()
    import numpy as np

    values = np.asarray(array, order="C")
    if values.dtype.hasobject:
        raise TypeError("an array of Python objects has no digest")
    values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    header = json.dumps(["array", values.dtype.str, list(values.shape)])
    return hashlib.sha256(header.encode() + b"\0" + values.tobytes()).hexdigest()


def file_digest(path: str) -> str:
    """Return the SHA-256 (32 hex characters) of a file's content; raises BadInput when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; give the path of a file") from None

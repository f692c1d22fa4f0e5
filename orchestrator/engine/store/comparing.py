"""A comparison of two artefacts by their numbers, not by how a library packed them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from orchestrator.engine.jobs.keys import differences
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.payloads import unpack_arrays, unpack_table

if TYPE_CHECKING:
    import numpy as np

RELATIVE, ABSOLUTE = 1e-3, 1e-5
"""Tolerance of floating-point numbers that another kind of machine has made: |a - b| <= ABSOLUTE + RELATIVE * |b|."""
_SHOWN: Final = 3

Values = Mapping[str, "np.ndarray[Any, Any]"]


def unlike(stored: Mapping[str, bytes], made: Mapping[str, bytes], *, exact: bool) -> list[str]:
    """Return in what the files of two artefacts differ, in words, nothing where they do not.

    ``exact``: the same values; otherwise floating-point numbers may differ by the tolerance above. A value that is no
    number in both is equal.
    """
    if stored.keys() != made.keys():
        return [f"it has the files {', '.join(sorted(stored))}, and made anew {', '.join(sorted(made))}"]
    return [
        f"{name}: {text}"
        for name in sorted(stored)
        if stored[name] != made[name]
        for text in _of_file(name, stored[name], made[name], exact)
    ]


def _of_file(name: str, stored: bytes, made: bytes, exact: bool) -> Iterator[str]:
    try:
        if name.endswith(".json"):
            found = _fields(json.loads(stored), json.loads(made), exact)
        else:
            read = _columns if name.endswith(".parquet") else unpack_arrays
            found = _arrays(read(stored), read(made), exact)
    except (CorruptArtefact, RecursionError, TypeError, ValueError):  # such as a type that NumPy does not have
        found = ["other bytes"]
    yield from found[:_SHOWN]
    if len(found) > _SHOWN:
        yield f"and {len(found) - _SHOWN} more"


def _columns(data: bytes) -> Values:
    import numpy as np

    table = unpack_table(data)
    return {name: np.asarray(table[name].to_numpy(zero_copy_only=False)) for name in table.column_names}


def _arrays(stored: Values, made: Values, exact: bool) -> list[str]:
    if stored.keys() != made.keys():
        return [f"it holds {', '.join(sorted(stored))}, and made anew {', '.join(sorted(made))}"]
    return [f"{name}, {text}" for name in stored if (text := _of_array(stored[name], made[name], exact))]


def _of_array(stored: np.ndarray[Any, Any], made: np.ndarray[Any, Any], exact: bool) -> str:
    """Return how two arrays differ, "" where they do not."""
    import numpy as np

    if (stored.shape, stored.dtype) != (made.shape, made.dtype):
        return f"{stored.dtype}{list(stored.shape)} instead of {made.dtype}{list(made.shape)}"
    if stored.dtype.kind not in "fc":
        if stored.dtype.hasobject:
            stored, made = (np.array([repr(value) for value in each.flat]) for each in (stored, made))
        count = int(np.count_nonzero(stored != made))
        return f"{count} of {stored.size} values" if count else ""
    close = np.isclose(stored, made, rtol=0 if exact else RELATIVE, atol=0 if exact else ABSOLUTE, equal_nan=True)
    if close.all():
        return ""
    with np.errstate(invalid="ignore"):
        most = np.nanmax(np.abs(stored - made)[~close], initial=0.0)
    return f"{np.count_nonzero(~close)} of {stored.size} values, by up to {most:.3g}"


def _fields(stored: Any, made: Any, exact: bool) -> list[str]:
    found = differences({"": stored}, {"": made})
    return [f"{path.strip('.') or 'content'}" for path, a, b in found if exact or not _near(a, b)]


def _near(a: Any, b: Any) -> bool:
    import numpy as np

    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))
    return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(map(_near, a, b))

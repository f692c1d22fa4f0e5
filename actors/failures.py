"""Exceptions that cross process borders and arrive with their own type and message."""

from __future__ import annotations

import traceback


def pack_failure(error: BaseException) -> bytes:
    """Return ``error`` as bytes, with the worker's traceback as a note.

    An exception that does not survive pickling becomes a RuntimeError that names its type and message.
    """
    from ray.exceptions import RayTaskError

    if isinstance(error, RayTaskError) and isinstance(error.cause, BaseException):
        error = error.cause
    note = "In the worker:\n" + "".join(traceback.format_exception(error))
    error.add_note(note)
    try:
        data = _dumps(error)
        copy = unpack_failure(data)
    except Exception as pickling:
        survives, why = False, f" ({type(pickling).__name__} when it was sent)"
    else:
        survives, why = type(copy) is type(error) and str(copy) == str(error), ""
    if survives:
        return data
    plain = RuntimeError(f"{type(error).__name__}: {error}{why}")
    plain.add_note(note)
    return _dumps(plain)


def _dumps(error: BaseException) -> bytes:
    from ray import cloudpickle

    data: bytes = cloudpickle.dumps(error)
    return data


def unpack_failure(data: bytes) -> BaseException:
    """Return the exception that ``pack_failure`` packed."""
    from ray import cloudpickle

    error = cloudpickle.loads(data)
    if not isinstance(error, BaseException):
        raise TypeError(f"a failure was expected, not {type(error).__name__}")
    return error

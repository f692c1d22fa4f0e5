"""``python:module:function``: the user's own data set, checked before anything is computed with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.groups import numbered
from audits.data.ids import number_of
from audits.data.points import FORMS, arrays_of, channels_first, is_ambiguous
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput
from audits.own.code import first_line, load
from audits.own.settings import modules_behind

EXACT = 2**24
"""The largest whole number up to which float32 holds every one."""
LAYOUT = "layout"
"""The option that says where the channels of images stand."""


def checked(name: str, returned: object, layout: str | None = None) -> Dataset:
    """Return what a user's function returned as a Dataset with its own fingerprint.

    ``returned`` is a Dataset, ``(inputs, labels)`` or ``(inputs, labels, groups)``, or what else holds points
    (``audits.data.points``: data sets of torch, a DataLoader, the path of an .npz file): uint8 images (N, C, H, W) or
    floats (N, ...), which become float32 without an allowed range; whole-number labels (N,) that use 0..C-1 without
    gaps; the group of each point (N,), a whole number or a name (``audits.data.groups``). ``layout``: of images,
    "channels_first" or "channels_last"; None: nobody said it (``points.channels_first``). BadInput otherwise. A Dataset
    whose images stay in files is returned as it is.
    """
    if isinstance(returned, Dataset) and not returned.in_memory:
        return returned  # made by this library, which has checked it
    if isinstance(returned, Dataset):
        parts: tuple[Any, ...] = (returned.inputs, returned.labels)
    elif isinstance(returned, (tuple, list)) and len(returned) in (2, 3):
        parts = tuple(returned)
    elif isinstance(returned, (np.ndarray, tuple, list, dict)) or returned is None:
        raise BadInput(f"{name} returned {type(returned).__name__}; give {FORMS}")
    else:
        parts = arrays_of(returned, name)
    inputs = _inputs(name, channels_first(_array(name, "inputs", parts[0]), layout, name))
    labels = _array(name, "labels", parts[1])
    if labels.dtype.kind not in "iu" or labels.shape != inputs.shape[:1]:
        raise BadInput(
            f"{name}: labels are {labels.dtype} of shape {labels.shape}; "
            f"needed: whole numbers of shape ({len(inputs)},)"
        )
    used = np.unique(labels)
    if isinstance(returned, Dataset):
        classes, value_range = returned.classes, returned.value_range
    else:
        if len(used) < 2 or used[0] != 0 or used[-1] != len(used) - 1:
            raise BadInput(
                f"{name}: labels are {', '.join(map(str, used[:8]))}{', ...' if len(used) > 8 else ''}; "
                "needed: 0 to C-1, two classes or more, without gaps; if a class has no point here, let "
                "python:module:function return an audits.data.dataset.Dataset that names all classes"
            )
        classes = tuple(str(label) for label in used)
        value_range = IMAGE_RANGE if inputs.dtype == np.uint8 else None
    names, notes = (returned.names, returned.notes) if isinstance(returned, Dataset) else (None, ())
    if layout is None and is_ambiguous(inputs.shape):
        notes += (f"{name}: inputs of shape {inputs.shape} are read as channels first; else add ?layout=channels_last",)
    number = next((name for place, name in enumerate(names or ()) if number_of(name) not in (None, place)), None)
    if number is not None:
        raise BadInput(f"{name}: a point is called {number!r}, which is the id of another one; begin with a letter")
    found = Dataset(name, inputs, labels.astype(np.int64), classes, value_range, names=names, notes=notes)
    groups = returned.groups if isinstance(returned, Dataset) else parts[2] if len(parts) == 3 else None
    return found if groups is None else found.grouped(numbered(name, groups, len(found)))


def _array(name: str, what: str, value: object) -> npt.NDArray[Any]:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{name}: {what} cannot become an array: {first_line(error)}") from error
    if array.dtype.kind not in "iuf":
        raise BadInput(f"{name}: {what} are {array.dtype}; allowed: numbers")
    return array


def _inputs(name: str, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if len(inputs.shape) < 2 or 0 in inputs.shape:
        raise BadInput(f"{name}: inputs have shape {inputs.shape}; needed: (N, C, H, W) images or (N, ...) floats")
    if inputs.dtype.kind == "f":
        if not np.isfinite(inputs).all():
            raise BadInput(f"{name}: {np.count_nonzero(~np.isfinite(inputs))} input values are NaN or infinite")
        return as_float32(name, inputs)
    if inputs.dtype != np.uint8:
        return _whole_numbers(name, inputs)
    if inputs.ndim != 4:
        raise BadInput(
            f"{name}: uint8 inputs have shape {inputs.shape}; needed: (N, C, H, W), C = 1 for grey images; of "
            "ids or counts give int64, of pixels floats, scaled as in the training"
        )
    return np.ascontiguousarray(inputs)


def _whole_numbers(name: str, inputs: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return token ids or categories as float32, as texts are held; refuse what that type cannot hold, and images."""
    if inputs.ndim > 3:
        raise BadInput(
            f"{name}: inputs are {inputs.dtype} of shape {inputs.shape}; allowed: uint8 images, floats, or ids (N, T)"
        )
    return as_float32(name, inputs)


def as_float32(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return numbers as float32; refuse finite ones that it cannot hold, and whole-number types that it would round."""
    if values.dtype.kind in "iu" and values.size:
        largest = max(abs(int(values.min())), abs(int(values.max())))
        if largest > EXACT:
            raise BadInput(
                f"{name}: inputs are {values.dtype} up to {largest}, and whole numbers above {EXACT} would be rounded; "
                "number ids from 0 on, or give numbers as floats, scaled"
            )
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(values, dtype=np.float32)
    if values.dtype.itemsize > found.dtype.itemsize and (lost := np.isinf(found) & np.isfinite(values)).any():
        raise BadInput(
            f"{name}: {np.count_nonzero(lost)} input values are beyond {np.finfo(np.float32).max:.2g}, the largest "
            "float32; scale them"
        )
    return found


def _load(request: Request) -> Dataset:
    request.allow(LAYOUT)
    function = load(request.name, request.root)
    if not callable(function):
        module, _, function_name = request.place.partition(":")
        raise BadInput(f"{request.name}: {module} has no function {function_name!r}")
    return called(function, request)


def called(function: Callable[[], object], request: Request) -> Dataset:
    """Return what a user's function returns, checked."""
    try:
        returned = function()
    except Exception as error:  # the user's code may raise anything; the one line says what
        raise BadInput(f"{request.name}: it raised {type(error).__name__}: {first_line(error)}") from error
    return checked(request.name, returned, request.options.get(LAYOUT))


def _describe(request: Request) -> Description:
    """Call the function: nothing less tells how many points it returns."""
    return description(_load(request), request)


def description(dataset: Dataset, request: Request) -> Description:
    """Return what is known of a data set that a function returned."""
    return Description(
        request.name, len(dataset), dataset.shape, dataset.classes, dataset.value_range, [request.place], True,
        "the owner's", "write a function that returns (inputs, labels) or (inputs, labels, groups)",
        notes=dataset.notes,
    )  # fmt: skip


def describe(request: Request, data: Dataset | None, how: str) -> Description:
    """Return what is known of the file or folder that a name gives; ``data``: its points, None if it is not there."""
    where = [str(request.local_path())]
    if data is None:
        return Description(request.name, 0, (), (), None, where, False, "the owner's", how)
    return Description(
        request.name, len(data), data.shape, data.classes, data.value_range, where, True, "the owner's", how,
        notes=data.notes,
    )  # fmt: skip


CATALOGUE.register("python")(
    Source("python:module:function", "what your own function returns: (inputs, labels)", _describe, _load)
)


def adapted(found: Any, name: str, module: str = "") -> Source:
    """Return the data set that a package offers as ``name``: a function without arguments, or a ``Source``."""
    if isinstance(found, Source):
        return found
    modules_behind(found, name, module)
    if not callable(found):
        raise BadInput(f"data set {name} is {type(found).__name__}; needed: a function that returns points")

    def read(request: Request) -> Dataset:
        request.allow(LAYOUT)
        return called(found, request)

    def described(request: Request) -> Description:
        return description(read(request), request)

    return Source(name, next(iter((found.__doc__ or "").strip().splitlines()), ""), described, read)

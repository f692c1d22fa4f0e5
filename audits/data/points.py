"""Points as people hold them (arrays, data sets of torch, a DataLoader, an .npz file) as the arrays used inside."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.data.bounded import arrays_within
from audits.data.dataset import Dataset
from audits.data.groups import numbered
from audits.data.tensors import TensorSet
from audits.errors import BadInput

if TYPE_CHECKING:
    import torch

FORMS = (
    "inputs and labels as arrays or tensors, (inputs, labels); a data set of torch or torchvision; a DataLoader; a "
    "Dataset or TensorSet; the path of an .npz file"
)
INPUTS, LABELS, GROUPS = ("inputs", "x", "images", "data"), ("labels", "y", "targets"), ("groups", "group")
LAYOUTS = ("channels_first", "channels_last")
MOST_CHANNELS = 4  # of images that people hold with channels last


def arrays_of(given: Any, name: str = "data") -> tuple[npt.NDArray[Any], ...]:
    """Return ``given`` as inputs (N, …), labels (N,) and, if there are some, groups (N,).

    A data set of torch is read item by item, in its own order; so is that of a DataLoader, whatever order the loader
    has. PIL images become (C, H, W). Raises BadInput, which calls it ``name``, for what is no form of points.
    """
    if isinstance(given, Dataset):
        groups = () if given.groups is None else (given.groups,)
        return (np.asarray(given.inputs), given.labels, *groups)
    if isinstance(given, TensorSet):
        return as_array(given.x), as_array(given.y)
    if isinstance(given, str | Path):
        return from_npz(Path(given), name)
    if isinstance(given, tuple | list) and len(given) in (2, 3):
        grouping = (numbered(name, part, len(part)) if isinstance(part, list | tuple) else part for part in given[2:])
        return tuple(as_array(part) for part in (*given[:2], *grouping))
    if isinstance(given, tuple | list):
        raise BadInput(f"{name} has {len(given)} parts; give {FORMS}")
    inner = getattr(given, "dataset", None)
    if inner is not None and hasattr(given, "batch_size"):  # a DataLoader
        return arrays_of(inner, name)
    if hasattr(given, "__len__") and hasattr(given, "__getitem__") and not isinstance(given, np.ndarray | dict):
        return from_items(given, name)
    raise BadInput(f"{name} is {type(given).__name__}; give {FORMS}")


def from_items(given: Any, name: str) -> tuple[npt.NDArray[Any], ...]:
    """Return the items of a data set, (image, label) each, as arrays."""
    tensors = getattr(given, "tensors", None)
    if isinstance(tensors, tuple):  # torch's TensorDataset
        return arrays_of(tensors, name)
    images, labels = [], []
    for index in range(len(given)):
        item = given[index]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise BadInput(f"{name}: item {index} is {type(item).__name__}; needed: (input, label)")
        images.append(as_image(item[0]))
        labels.append(as_array(item[1]))
    if len({image.shape for image in images}) > 1:
        raise BadInput(f"{name}: inputs have several shapes; let the data set's transform give all of them one size")
    if not images:
        raise BadInput(f"{name} holds no points")
    return np.stack(images), np.stack(labels)


def as_image(value: Any) -> npt.NDArray[Any]:
    """Return one input as an array; a PIL image as (C, H, W)."""
    array = as_array(value)
    if hasattr(value, "getbands"):  # a PIL image
        return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)
    return array


def as_array(value: Any) -> npt.NDArray[Any]:
    """Return an array or a tensor, on whatever device, as a NumPy array."""
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def from_npz(path: Path, name: str) -> tuple[npt.NDArray[Any], ...]:
    """Return inputs, labels and groups of an .npz file; nothing in it is unpickled."""
    try:
        held = arrays_within(path, f"{name}: {path}")
    except BadInput:
        raise
    except ValueError as error:
        said = next(iter(str(error).splitlines()), "")
        if "allow_pickle" in str(error):  # numpy's own words say how to load it all the same
            said = "it is no archive, or holds pickled objects, which are never read"
        raise BadInput(f"{name}: {path} cannot be read as .npz: {said}") from error
    except (OSError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        said = next(iter(str(error).splitlines()), "")
        raise BadInput(f"{name}: {path} cannot be read as .npz: {said}; is it whole?") from error
    parts = []
    for names in (INPUTS, LABELS, GROUPS):
        key = next((key for key in names if key in held), None)
        if key is not None:
            parts.append(held[key])
        elif names is not GROUPS:
            raise BadInput(
                f"{name}: {path} holds {', '.join(held) or 'nothing'}; needed: an array called {' or '.join(names)}"
            )
    return tuple(parts)


def channels_first(inputs: npt.NDArray[Any], layout: str | None, name: str) -> npt.NDArray[Any]:
    """Return images of ``layout`` (channels_first, channels_last) as (N, C, H, W); grey ones may lack channels.

    None: nobody said it, and (N, C, H, W) is taken; BadInput for what looks like (N, H, W, C).
    """
    if layout is None:
        if is_channels_last(inputs.shape):
            raise BadInput(
                f"{name}: inputs have shape {inputs.shape}; needed: channels first, inputs.transpose(0, 3, 1, 2), or "
                f"?layout=channels_last behind the name; ?layout=channels_first if these are {inputs.shape[1]} channels"
            )
        return inputs
    if layout not in LAYOUTS:
        raise BadInput(f"data set {name!r}: layout is {layout!r}; allowed: {', '.join(LAYOUTS)}")
    if layout == "channels_first":
        return inputs
    if inputs.ndim == 3:
        return inputs[:, None]
    if inputs.ndim != 4:
        raise BadInput(f"data set {name!r}: layout is {layout}, but inputs have shape {inputs.shape}, not (N, H, W, C)")
    return np.moveaxis(inputs, -1, 1)


def is_channels_last(shape: Sequence[int]) -> bool:
    """Say whether a shape is (N, H, W, C): it ends in a number of channels, and has none in the second place.

    Square images have any number of channels: (N, 64, 64, 13). Many channels of a few square values, (N, 512, 1, 1),
    are features of a model.
    """
    if len(shape) != 4 or shape[1] <= MOST_CHANNELS or shape[2] == shape[3]:
        return False
    return shape[3] <= MOST_CHANNELS or shape[1] == shape[2]


def is_ambiguous(shape: Sequence[int]) -> bool:
    """Say whether a shape has numbers of channels in the second and in the last place, around a side of an image."""
    return len(shape) == 4 and max(shape[1], shape[3]) <= MOST_CHANNELS < shape[2]


def tensor_set(given: Any, name: str = "data") -> TensorSet:
    """Return points in any form (``arrays_of``) as a ``TensorSet``; tensors stay as they are, and where they are."""
    import torch

    if isinstance(given, TensorSet):
        return given
    pair: Sequence[Any] = getattr(given, "tensors", given)
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(part, torch.Tensor) for part in pair):
        return matched(pair[0], pair[1], name)
    if isinstance(given, tuple | list) and len(given) != 2:
        raise BadInput(f"{name} has {len(given)} parts; give {FORMS}")
    arrays = arrays_of(given, name)
    if len(arrays) < 2:
        raise BadInput(f"{name} has {len(arrays)} parts; give {FORMS}")
    return matched(torch.as_tensor(np.ascontiguousarray(arrays[0])), torch.as_tensor(arrays[1]).long(), name)


def matched(x: torch.Tensor, y: torch.Tensor, name: str) -> TensorSet:
    """Return inputs and as many labels; raises BadInput for other numbers of them."""
    if len(x) != len(y):
        raise BadInput(f"{name} has {len(x)} inputs but {len(y)} labels; give one label for each input")
    return TensorSet(x, y)

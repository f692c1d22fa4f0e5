"""The content of a checkpoint's file, read without running any of it.

safetensors holds tensors alone, and torch reads its own format with ``weights_only=True``.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import warnings
import zipfile
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath
from textwrap import shorten
from types import SimpleNamespace
from typing import Any

import torch

from audits.data.lfs_pointers import check_fetched
from audits.data.regular import opened
from audits.errors import BadInput
from audits.targets.folders import weight_files
from audits.targets.forms import READ

SAFETENSORS = ".safetensors"
PATHS = (PosixPath, PurePosixPath, PureWindowsPath)
MOST_BYTES = 2**35
"""Of one file, unpacked: 32 GiB, a model of eight billion float32 parameters."""
UNSUPPORTED = "Unsupported operand"
"""What torch says of bytes that are no pickle; in others it names what is more than tensors."""
REFUSED = re.compile(r"GLOBAL ([\w.]+)|<(?:class|built-in function|function) '?([\w.]+)")
"""Where torch names a class or function that it does not load."""
LATER = re.compile(r"pickle protocol (\d+)")
"""Where torch warns of a pickle whose instructions it may not know."""
ALSO = "safetensors.torch.save_model(model, 'weights.safetensors')"
SAVE = "torch.save(model.state_dict(), 'weights.pt')"


def plain_dict(*_: Any) -> dict[Any, Any]:
    """Return the dict that is filled in the place of a defaultdict, which torch does not fill."""
    return {}


def plain_list(*_: Any) -> list[Any]:
    """Return the list that is filled in the place of a deque."""
    return []


class Unread:
    """What numbers and arrays of numpy become, which no reader asks for.

    A dtype from a file can say that its bytes are addresses of objects, so none is made.
    """

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...


RECORDS: list[Any] = [
    argparse.Namespace,
    SimpleNamespace,
    (plain_dict, "collections.defaultdict"),
    *(bool, int, float, str, list, dict),  # what a defaultdict makes
    (plain_list, "collections.deque"),
    *(datetime, date, time, timedelta, timezone),
    *((made, f"{module}.{made.__name__}") for made in PATHS for module in ("pathlib", "pathlib._local")),
    *((PureWindowsPath, f"{module}.WindowsPath") for module in ("pathlib", "pathlib._local")),
    (Unread, "numpy.ndarray"),
    (Unread, "numpy.dtype"),
    *((Unread, f"numpy.{core}.multiarray.{name}") for name in ("scalar", "_reconstruct") for core in ("core", "_core")),
]
"""Plain values that stand beside the weights in many checkpoints, and whose making runs nothing: settings, scores,
times, the states of generators. Versions of numpy and Python call the places of theirs differently."""


def read_held(path: Path, file: str) -> Any:
    """Return what the file or folder ``path``, which a plan calls ``file``, holds: tensors in dicts and lists.

    One file of a model in several stands for all of them. Raises BadInput for one that is not there, is too large, is
    of another kind, or holds what only code can load.
    """
    files = weight_files(path, file)
    if files != [path]:
        tensors: dict[str, Any] = {}
        for each in files:
            held = read_file(each, f"{file}: {each.name}")
            if not isinstance(held, dict):
                raise BadInput(f"{file}: {each.name} holds a {type(held).__name__}; allowed: {READ}")
            if twice := tensors.keys() & held.keys():
                raise BadInput(
                    f"{file}: {each.name} holds {min(map(str, twice))} once more, so these files are no parts of one "
                    "model; give a copy of the file that is meant, under another name"
                )
            tensors |= held
        return tensors
    return read_file(path, file)


def read_file(path: Path, file: str) -> Any:
    """Return what a single file holds."""
    if path.suffix == ".onnx":
        raise BadInput(
            f"{file} is an ONNX graph, whose layers and gradients cannot be read; save the weights where the model was "
            f"made: {SAVE}"
        )
    check_bytes(path, file)
    return read_safetensors(path, file) if is_safetensors(path) else read_checkpoint(path, file)


def check_bytes(path: Path, file: str) -> None:
    """Refuse a file that is not there, or that would become too large."""
    try:
        with opened(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if zipfile.is_zipfile(stream):
                with zipfile.ZipFile(stream) as archive:
                    size = max(size, sum(entry.file_size for entry in archive.infolist()))
    except (OSError, zipfile.BadZipFile) as error:
        raise BadInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    check_fetched(path, file)
    if size > MOST_BYTES:
        raise BadInput(f"{file} holds {size / 2**30:.0f} GiB; allowed: up to {MOST_BYTES / 2**30:.0f} GiB")


def is_safetensors(path: Path) -> bool:
    """Say whether a file is safetensors by its ending, or by its first bytes: the length of a header, and its brace."""
    with opened(path) as stream:
        first = stream.read(9)
    return path.suffix.lower() == SAFETENSORS or (first[8:] == b"{" and first[4:8] == bytes(4))


def read_safetensors(path: Path, file: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"{file} cannot be read as safetensors ({one_line(error)}); save it with safetensors.torch.save_file"
        ) from None


def read_checkpoint(path: Path, file: str) -> Any:
    """Return what torch.save wrote, nothing of which is run."""
    try:
        with warnings.catch_warnings(record=True) as warned, torch.serialization.safe_globals(RECORDS):
            warnings.simplefilter("always")  # also said of a TorchScript archive, which is refused below
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        later = LATER.search(" ".join(str(each.message) for each in warned))
        if UNSUPPORTED in str(error) and later:
            raise BadInput(
                f"{file} is written in pickle protocol {later[1]}; allowed: 2, that of torch.save; save the weights "
                f"again where the model was made: {SAVE}, or {ALSO}"
            ) from None
        if UNSUPPORTED in str(error):
            raise not_saved(file, error) from None
        refused = REFUSED.search(str(error))
        named = (refused[1] or refused[2]) if refused else "objects of Python"
        raise BadInput(
            f"{file} holds more than tensors and plain values ({named}), and reading that runs code of the file; save "
            f"the weights alone where the model was made: {SAVE}, or {ALSO}"
        ) from None
    except Exception as error:  # of torch's reader, whose errors have no class of their own
        if "TorchScript" in str(error):
            raise BadInput(
                f"{file} is a TorchScript program, whose layers and gradients cannot be read; save the weights where "
                f"the model was made: {SAVE}"
            ) from None
        raise not_saved(file, error) from None


def not_saved(file: str, error: Exception) -> BadInput:
    """Return the error of a file that torch.save did not write, or not to its end."""
    said = UNSUPPORTED if UNSUPPORTED in str(error) else one_line(error)
    return BadInput(f"{file} cannot be read as a file of torch.save ({said}); allowed: {READ}; {SAVE} writes one")


def one_line(error: Exception) -> str:
    """Return the first sentence of what an error says."""
    return shorten(" ".join(str(error).split()).partition(". ")[0], 120, placeholder=" …") or type(error).__name__

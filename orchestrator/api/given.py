"""Files that a plan names, from what somebody holds in Python, a module, points, ids; named after their content."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.points import arrays_of
from audits.errors import BadInput
from audits.owners import exposed_at, is_others
from audits.writing import CannotWrite, make_folder, opened_folder, write_whole
from orchestrator.engine.store.payloads import pack_weights
from orchestrator.engine.store.trust import ALLOW, Trust

if TYPE_CHECKING:
    from torch import nn

FOLDER = Path(".orch", "given")
"""Where the files are kept: a run is repeated from its plan.yaml as long as they are there."""
HERE = Path()
"""The working folder, which somebody else may have made: no link in it is followed."""
FOUND = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def data_name(data: Any) -> str:
    """Return the name under which a plan reads ``data``: points as ``audits.data.points`` takes them, or a name."""
    if isinstance(data, str):
        return data
    if isinstance(data, Path):
        return f"npz:{data}"
    import numpy as np

    parts = dict(zip(("inputs", "labels", "groups"), arrays_of(data), strict=False))
    return f"npz:{kept('data', '.npz', lambda file: np.savez(file, **parts))}"  # type: ignore[arg-type]  # arrays by name


def target_section(target: Any, members: Any = None) -> dict[str, Any]:
    """Return the section ``target`` of a plan: of a module, a file's name, an address, or a mapping of such.

    Modules become .safetensors of their state dict, arrays of ids or bools .npy files.
    """
    found = dict(target) if isinstance(target, Mapping) else {"weights": target}
    if members is not None:
        if "members" in found:
            raise BadInput("members is given beside a target that has members; give them once")
        found["members"] = members
    return {name: value_of(name, value) for name, value in found.items()}


def value_of(name: str, value: Any) -> Any:
    """Return one value of the section as a plan writes it."""
    import numpy as np

    if hasattr(value, "state_dict"):
        return weights_file(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind == "O" and all(isinstance(one, str) for one in array.tolist()):
            array = array.astype(str)  # as pandas holds texts
        if array.ndim != 1 or array.dtype.kind not in "iubU":
            raise BadInput(
                f"target.{name} is an array of {array.dtype} of shape {array.shape}; allowed: whole numbers or texts "
                "(n,), ids or names of points, or a bool for every point"
            )
        return str(kept(name, ".npy", lambda file: np.save(file, array)))
    if name == "weights" and isinstance(value, list | tuple):
        return [value_of(name, each) for each in value]
    return value


def weights_file(module: nn.Module) -> str:
    """Return the file of a module's weights."""
    return str(kept("weights", ".safetensors", lambda file: file.write(pack_weights(module))))


def kept(word: str, suffix: str, write: Callable[[io.BytesIO], Any]) -> Path:
    """Return the file, for its owner alone, that holds what ``write`` writes; equal contents are written once.

    Raises BadInput where a link or anything else is in the way, and for a folder that others can change.
    """
    sink = io.BytesIO()
    write(sink)
    content = sink.getvalue()
    file = FOLDER / f"{word}-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    try:
        make_folder(FOLDER.parent, below=HERE, shared=False)
        make_folder(FOLDER, below=HERE, private=True)
        with opened_folder(FOLDER, HERE) as folder:
            require_own(folder, exposed_at(FOLDER.resolve()))
            is_there = holds(folder, file.name, content)
        if not is_there:
            write_whole(file, content, below=HERE, private=True)
    except CannotWrite as error:
        raise BadInput(str(error)) from None
    return file.absolute()


def require_own(folder: int, exposed: Path | None) -> None:
    """Raise BadInput where others can change what lies in ``FOLDER``, unless the user allows that, as for a store.

    ``folder``: the opened one; ``exposed``: one, itself or above it, by which others can exchange it, None for none.
    """
    place = FOLDER.absolute()
    exposed = place if is_others(os.fstat(folder)) else exposed
    if exposed is not None and not Trust.of(with_key=False).allows(str(place)):
        raise BadInput(
            f"{place} cannot hold what is given: {exposed} belongs to another user, or others can write into it, who "
            f"could exchange it; work in a folder of your own, run chmod go-w {exposed}, or, if you trust them, set "
            f"{ALLOW}={place}"
        )


def holds(folder: int, name: str, content: bytes) -> bool:
    """Say whether the file ``name`` is one of this user's alone with just this ``content``."""
    try:
        handle = os.open(name, FOUND, dir_fd=folder)
    except OSError:  # none, or a link
        return False
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1
        return own and not found.st_mode & 0o077 and found.st_size == len(content) and file.read() == content

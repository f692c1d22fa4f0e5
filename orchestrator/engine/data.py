"""The data set and the device of a plan, on this machine."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from audits.data.catalogue import encoded, load
from audits.data.groups import read_groups
from audits.data.ids import Points
from audits.data.source import parse
from audits.errors import BadInput
from audits.home import expanded

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.base import BasePlan

P = TypeVar("P", bound="BasePlan")


Named = tuple[str, str | None, str | None]
Stamp = tuple[tuple[str, int, int], ...]
LOOKED_AT = 16
"""Images that are decoded, at most, before any work, of a set that is not read into memory: evenly over it."""
_LOADED: dict[Named, tuple[Stamp, Dataset]] = {}


def data_of(name: str, root: str | None, groups: str | None = None) -> Dataset:
    """Return the data set, read once per process as long as its files stay what they are.

    ``groups``: the file that says which points belong together.
    """
    named, stamp = (name, root, groups), stamp_of(name, root, groups)
    if named not in _LOADED or _LOADED[named][0] != stamp:
        found = read_grouped(name, root, groups) if groups else load(name, root)
        look_at(found)
        _LOADED[named] = stamp, found
    return _LOADED[named][1]


def looked_at(name: str, root: str | None, groups: str | None = None) -> Dataset:
    """Return the data set to be checked, not computed with: images in files stay there, and few of them are decoded.

    Their fingerprint is that of the files, so keys of jobs differ from those of a run. A note says how many were
    decoded.
    """
    found = encoded(name, root)
    if found is None:
        return data_of(name, root, groups)
    data = replace(found, kept=0).dataset(name)
    if (looked := look_at(data)) < len(data):
        said = (
            f"{name}: {looked} of {len(data)} images were decoded, evenly over the set; a run that meets a damaged one "
            "among the others stops there"
        )
        data = replace(data, notes=(*data.notes, said))
    return data if groups is None else data.grouped(read_groups(groups, Points.of(data, root)))


def look_at(data: Dataset) -> int:
    """Decode a few images of a set that stays in its files, and return how many; of sets in memory none.

    Raises BadInput for one of which the header does not show that it is damaged.
    """
    import numpy as np

    if isinstance(data.inputs, np.ndarray):
        return 0
    return len(data.inputs[:: max(1, -(-len(data) // LOOKED_AT))])


def forget_data() -> None:
    """Read every data set again when it is next asked for, as users' code that returned it may have been edited."""
    _LOADED.clear()


def stamp_of(name: str, root: str | None, groups: str | None) -> Stamp:
    """Return path, time and size of the files of a data set that a path names, and of its groups.

    Of a folder these are the folder itself and what is in it, but not what is in folders in it.
    """
    request = parse(name, root)
    paths = [request.local_path()] if request.place else []
    if groups is not None:
        paths.append(expanded(groups))
    found = []
    for path in paths:
        with suppress(OSError, ValueError):
            for each in (path, *(sorted(path.iterdir()) if path.is_dir() else ())):
                about = each.stat()
                found.append((str(each.absolute()), about.st_mtime_ns, about.st_size))
    return tuple(found)


def read_grouped(name: str, root: str | None, groups: str) -> Dataset:
    """Return the data set in the groups that the file ``groups`` says."""
    found = data_of(name, root)
    if found.groups is not None:
        raise BadInput(f"data.groups is {groups!r}, but {name} returns groups of its own; give them in one place")
    return found.grouped(read_groups(groups, Points.of(found, root)))


def device_of(plan: BasePlan) -> str:
    """Return "cpu" or "cuda" (with its index when the plan names one): what ``compute.device`` comes to here."""
    if plan.compute.device != "auto":
        return plan.compute.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def on_this_machine(plan: P) -> tuple[P, str]:
    """Return the plan, which names the model of the GPU that it is for, and its device on this machine.

    Raises BadInput for a plan that asks for a GPU that is not there, unless its workers are on a cluster.
    """
    device = device_of(plan)
    return (plan, device) if device == "cpu" else (on_gpu(plan, gpu_here(plan, device)), device)


def gpu_here(plan: BasePlan, device: str) -> str:
    """Return the model of this machine's GPU, "" where there is none and the plan's workers are elsewhere."""
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name(device))
    if plan.compute.address is not None:
        return ""
    raise BadInput(f"compute.device is {device}, but torch finds no GPU on this machine; give cpu or auto")


def gpus_here(plan: BasePlan, device: str) -> float:
    """Return the GPUs that each worker on this machine holds: one, or a share if workers are more than GPUs."""
    given, workers = plan.compute.gpus_per_worker, plan.compute.workers
    if given not in ("auto", 0):
        return float(given)
    if not device.startswith("cuda"):
        return 0.0
    import torch

    gpus = torch.cuda.device_count()
    return 1.0 if workers == "auto" or workers <= gpus else 1.0 / math.ceil(workers / max(gpus, 1))


def on_gpu(plan: P, gpu: str) -> P:
    """Return the plan as one for GPUs of the model ``gpu`` ("" unknown), whose name is in the keys of artefacts."""
    wanted = plan.compute.gpu
    if not gpu or wanted == gpu:
        return plan
    if wanted is not None:
        raise BadInput(
            f"compute.gpu is {wanted!r}, but workers have {gpu!r}; leave it out, or use workers with such a GPU"
        )
    return plan.changed({"compute.gpu": gpu})

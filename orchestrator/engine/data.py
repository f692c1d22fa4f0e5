"""The data set and the device of a plan, on this machine."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from audits.data.catalogue import load
from audits.data.groups import read_groups
from audits.data.ids import Points
from audits.errors import BadInput

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.base import BasePlan

P = TypeVar("P", bound="BasePlan")


@cache
def data_of(name: str, root: str | None, groups: str | None = None) -> Dataset:
    """Return the data set, loaded once per process; ``groups``: the file that says which points belong together."""
    if groups is None:
        return load(name, root)
    found = data_of(name, root, None)
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

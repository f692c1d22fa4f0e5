"""The data set and the device of a plan, on this machine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from audits.data.catalogue import load
from audits.data.groups import read_groups
from audits.errors import BadInput

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.base import BasePlan


@cache
def data_of(name: str, root: str | None, groups: str | None = None) -> Dataset:
    """Return the data set, loaded once per process; ``groups``: the file that says which points belong together."""
    found = load(name, root)
    if groups is None:
        return found
    if found.groups is not None:
        raise BadInput(f"data.groups is {groups!r}, but {name} returns groups of its own; give them in one place")
    return found.grouped(read_groups(groups, len(found)))


def device_of(plan: BasePlan) -> str:
    """Return "cpu" or "cuda" (with its index when the plan names one): what ``compute.device`` comes to here."""
    if plan.compute.device != "auto":
        return plan.compute.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"

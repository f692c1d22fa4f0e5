"""The data set and the device of a plan, on this machine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from audits.data.catalogue import load

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.base import BasePlan


@cache
def data_of(name: str, root: str | None) -> Dataset:
    """Return the data set, loaded once per process."""
    return load(name, root)


def device_of(plan: BasePlan) -> str:
    """Return "cpu" or "cuda" (with its index when the plan names one): what ``compute.device`` comes to here."""
    if plan.compute.device != "auto":
        return plan.compute.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"

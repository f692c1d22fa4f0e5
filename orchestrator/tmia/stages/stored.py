"""Models and points of a TMIA plan, as its stages read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from audits.arrays import Ids
from audits.data.tensors import TensorSet
from orchestrator.engine.jobs.job import Reference
from orchestrator.tmia.design import Fitted, Side
from orchestrator.tmia.stages.context import Context

if TYPE_CHECKING:
    from torch import nn


def stored(context: Context, model: Fitted) -> nn.Module:
    """Return the trained or given model from the store."""
    design = context.design
    job = design.train_job(model)
    reference = Reference(job.stage, job.key)
    return context.stored(reference, lambda: design.build(model.side, len(design.classes(model.side)), 0))


def tensors(context: Context, side: Side, ids: Ids) -> TensorSet:
    """Return points of a side on the plan's device; classes are counted among those that take part."""
    design = context.design
    points = design.data_of_side(side).tensors(ids, design.device)
    classes = torch.tensor(design.classes(side), device=points.y.device)
    return replace(points, y=torch.searchsorted(classes, points.y))

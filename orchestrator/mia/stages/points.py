"""Points and models of a membership plan, as its stages read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from audits.data.tensors import TensorSet
from orchestrator.mia.stages.context import Context

if TYPE_CHECKING:
    from torch import nn

    from audits.arrays import Ids
    from orchestrator.mia.design import Fitted


def pool_points(context: Context, pool: int, places: Ids | slice = slice(None)) -> TensorSet:
    """Return points of a pool, those at ``places``, under the classes that models are taught."""
    design = context.design
    return labelled(context, design.drawn.pools[pool][places], design.taught(pool).labels[places])


def own_points(context: Context, model: Fitted) -> TensorSet:
    """Return the points that a model trains on, under the classes that it is taught."""
    design = context.design
    if design.given is None:
        return pool_points(context, model.pool, np.flatnonzero(model.half))
    ids = design.trained_on(model)
    return labelled(context, ids, design.labels(ids))


def outside_points(context: Context, places: Ids | slice = slice(None)) -> TensorSet:
    """Return points outside of all pools, those at ``places``."""
    ids = context.design.drawn.test[places]
    return labelled(context, ids, context.design.labels(ids))


def labelled(context: Context, ids: Ids, labels: Ids) -> TensorSet:
    """Return the points ``ids`` under ``labels``, counted among the classes that take part."""
    import torch

    found = context.tensors(ids)
    return replace(found, y=torch.from_numpy(labels).to(found.y))


def stored(context: Context, model: Fitted) -> nn.Module:
    """Return a trained model, from the store."""
    return context.stored(context.design.trained(model), lambda: context.design.build(model, 0))

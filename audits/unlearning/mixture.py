"""Sets in which forget points stand among retain points, so that batches mix both."""

from __future__ import annotations

import torch

from audits.data.tensors import TensorSet


def mixed(retain: TensorSet, forget: TensorSet) -> TensorSet:
    """Return one set with the retain points first and the forget points behind them."""
    return TensorSet(torch.cat([retain.x, forget.x]), torch.cat([retain.y, forget.y]))


def relabelled(forget: TensorSet, classes: int, generator: torch.Generator) -> TensorSet:
    """Return ``forget`` with labels drawn uniformly from the ``classes`` − 1 wrong ones of each point."""
    shift = torch.randint(1, classes, forget.y.shape, generator=generator).to(forget.y.device)
    return TensorSet(forget.x, (forget.y + shift) % classes)

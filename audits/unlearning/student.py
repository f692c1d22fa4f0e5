"""The student's forward pass in train mode, for batches of any size."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def student_logits(student: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the logits (N, classes) of ``student`` in the mode it is in.

    A single point has no variance: BatchNorm then uses its running statistics and leaves them as they are. Only a
    set of one point (or a batch size of 1) makes such a batch, since ``batches`` joins a lone last one to its
    neighbour.
    """
    if len(x) > 1:
        return student(x)  # type: ignore[no-any-return]  # a module returns Any
    norms = [module for module in student.modules() if isinstance(module, _BatchNorm) and module.training]
    for module in norms:
        module.eval()
    try:
        return student(x)  # type: ignore[no-any-return]  # a module returns Any
    finally:
        for module in norms:
            module.train()

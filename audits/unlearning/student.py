"""The student's forward pass in train mode, for batches of any size."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from audits.training.team import Team
from audits.training.together import Forward, forward_of


def student_forward(student: nn.Module, team: Team) -> Forward:
    """Return the forward pass of ``student`` for the steps of one method, in the mode that it is in.

    A single point has no variance: BatchNorm then uses its running statistics and leaves them as they are. Only a
    set of one point (or a batch size of 1) makes such a batch, since ``batches`` joins a lone last one to its
    neighbour.
    """
    whole = forward_of(student, team)

    def forward(x: torch.Tensor, points: int) -> torch.Tensor:
        if points > 1:
            return whole(x, points)
        norms = [module for module in student.modules() if isinstance(module, _BatchNorm) and module.training]
        for module in norms:
            module.eval()
        try:
            return whole(x, points)
        finally:
            for module in norms:
                module.train()

    return forward

"""Teachers: their logits on a set, and how far a student is from them."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.training.loop import logits


def teacher_logits(teacher: nn.Module, data: TensorSet) -> torch.Tensor:
    """Return the teacher's logits (N, classes) on ``data``, in eval mode; the model itself is not touched."""
    return logits(copy.deepcopy(teacher).eval(), data.x)


def divergence(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return KL(softmax(teacher/T) ‖ softmax(student/T)) · T², mean over the rows of two (N, classes) logit tables."""
    log_student = F.log_softmax(student / temperature, dim=1)
    log_teacher = F.log_softmax(teacher / temperature, dim=1)
    return F.kl_div(log_student, log_teacher, reduction="batchmean", log_target=True) * temperature**2

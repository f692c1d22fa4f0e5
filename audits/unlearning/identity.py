"""No unlearning: the control for which the audit is plain membership inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.task import Task


@UNLEARNERS.register("identity")
@dataclass(frozen=True)
class Identity(Unlearner):
    """Control: returns a copy of the model, so every attack on membership must find it."""

    copies: ClassVar[bool] = True
    reads_forget: ClassVar[bool] = False
    reads_retain: ClassVar[bool] = False

    def _update(self, task: Task) -> nn.Module:
        return task.student

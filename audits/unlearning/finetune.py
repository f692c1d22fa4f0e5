"""Fine-tuning on the retain set (FT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from audits.training.fit import fit
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.settings import Count, Momentum, NotNegative, Positive, Size
from audits.unlearning.task import Task


@UNLEARNERS.register("finetune")
@dataclass(frozen=True)
class FineTune(Unlearner):
    """Minimise CE on the retain set for a few epochs and hope that the forget set is forgotten meanwhile."""

    reads_forget: ClassVar[bool] = False

    learning_rate: Positive = 0.01
    epochs: Count = 10
    batch_size: Size = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "sgd"
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4
    schedule: Literal["constant", "cosine"] = "cosine"

    def _update(self, task: Task) -> nn.Module:
        return fit(task.student, task.retain, self.tuning(), seed=task.seed, keeper=task.keeper, team=task.team)

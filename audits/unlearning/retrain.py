"""Exact unlearning: train again, from scratch, on the retain set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from audits.errors import BadInput
from audits.training.fit import train_model
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.task import Task


@UNLEARNERS.register("retrain")
@dataclass(frozen=True)
class Retrain(Unlearner):
    """Control: the target's own recipe from a fresh initialisation on the retain set; attacks must sit at chance."""

    trains_from_scratch: ClassVar[bool] = True
    reads_forget: ClassVar[bool] = False

    def _update(self, task: Task) -> nn.Module:
        if task.recipe is None or task.build is None:
            raise BadInput("retrain needs the target's recipe and architecture; pass recipe= and build=")
        return train_model(task.build, task.retain, task.recipe, task.seed, task.keeper, task.team)

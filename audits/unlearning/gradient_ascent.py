"""Gradient ascent on the forget set (GA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import nn

from audits.seeds import Purpose
from audits.training.backward import Backward
from audits.training.loop import batches, make_optimizer, make_schedule, step
from audits.training.together import forward_of
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.settings import Count, Momentum, NotNegative, Positive, Size
from audits.unlearning.task import Task


@UNLEARNERS.register("gradient_ascent")
@dataclass(frozen=True)
class GradientAscent(Unlearner):
    """Minimise −CE on the forget set, with frozen BatchNorm statistics and a clipped gradient.

    The whole student stands in eval mode, so Dropout is off too. The cosine schedule is stepped per epoch;
    ``schedule_per_batch`` steps it per batch, as Apollo's reference does.
    """

    reads_retain: ClassVar[bool] = False

    learning_rate: Positive = 2e-4
    epochs: Count = 10
    batch_size: Size = 64
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4
    clip_norm: Positive = 0.1
    schedule_per_batch: bool = False

    def _update(self, task: Task) -> nn.Module:
        student, forget = task.student.eval(), task.forget
        optimizer = make_optimizer(student, self.tuning(optimizer="sgd"))
        schedule = make_schedule(optimizer, "cosine", self.epochs)
        order = task.generator(Purpose.ORDER)
        forward = forward_of(student, task.team)
        backward = Backward(student, lambda x, y: -F.cross_entropy(forward(x, len(y)), y), task.team)
        with task.dropout():
            steps = task.steps(optimizer, schedule, order)
            for _ in steps.epochs(self.epochs):
                left = list(steps.left(batches(len(forget), self.batch_size, order)))
                for x, y in steps.each_step(task.batches(forget, left)):
                    step(backward, optimizer, self.clip_norm, x, y)
                    if self.schedule_per_batch:
                        schedule.step()
                if not self.schedule_per_batch:
                    schedule.step()
        return student

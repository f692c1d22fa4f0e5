"""Bad teacher (Chundawat et al., "Can Bad Teaching Induce Forgetting?", arXiv 2205.08096)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from audits.data.tensors import at_once_on
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed
from audits.training.backward import Backward
from audits.training.loop import batches, make_optimizer, make_schedule, step
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.distillation import divergence, teacher_logits
from audits.unlearning.mixture import mixed
from audits.unlearning.settings import Count, Momentum, NotNegative, Positive, Size
from audits.unlearning.student import student_forward
from audits.unlearning.task import Task


@UNLEARNERS.register("bad_teacher")
@dataclass(frozen=True)
class BadTeacher(Unlearner):
    """Follow the original model on the retain set and a randomly initialised one on the forget set (BT).

    Minimises KL_T(teacher ‖ student) in batches that mix both sets; T is ``temperature``, the divergence is times T²
    and the mean over the points. Both teachers stand in eval mode. The references average over the classes too, which
    divides the loss by their number, and leave T² out (theirs is 1): ``mean_over_classes`` does the former.
    """

    learning_rate: Positive = 0.02
    epochs: Count = 10
    temperature: Positive = 1.0
    batch_size: Size = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "sgd"
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4
    schedule: Literal["constant", "cosine"] = "cosine"
    mean_over_classes: bool = False

    def _update(self, task: Task) -> nn.Module:
        student, data = task.student, mixed(task.retain, task.forget)
        teachers = torch.cat(
            [teacher_logits(task.original, task.retain), teacher_logits(random_teacher(task), task.forget)]
        )
        share = 1 / teachers.shape[1] if self.mean_over_classes else 1.0
        optimizer = make_optimizer(student, self.tuning())
        schedule = make_schedule(optimizer, self.schedule, self.epochs)
        order = task.generator(Purpose.ORDER)
        forward = student_forward(student, task.team)

        def gap(x: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
            return share * divergence(forward(x, len(teacher)), teacher, self.temperature)

        backward = Backward(student, gap, task.team)
        with task.dropout():
            steps = task.steps(optimizer, schedule, order)
            for _ in steps.epochs(self.epochs):
                left = list(steps.left(batches(len(data), self.batch_size, order)))
                for rows, (x, _) in steps.each_step(
                    zip(at_once_on(data.y.device, left), task.batches(data, left), strict=True)
                ):
                    step(backward, optimizer, None, x, teachers[rows])
                schedule.step()
        return student


def random_teacher(task: Task) -> nn.Module:
    """Return a fresh model of the student's architecture, device and dtype."""
    if task.build is None:
        raise BadInput("bad_teacher needs the target's architecture for its random teacher; pass build=")
    weight = next(task.student.parameters())
    return task.build(derive_seed(task.seed, Purpose.TEACHER)).to(weight.device, weight.dtype)

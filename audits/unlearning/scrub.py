"""SCRUB (Kurmanji et al., "Towards Unbounded Machine Unlearning", arXiv 2302.09880)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import nn

from audits.seeds import Purpose
from audits.training.loop import batches, make_optimizer
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.distillation import divergence, teacher_logits
from audits.unlearning.settings import Count, Momentum, NotNegative, Positive, Size
from audits.unlearning.student import student_logits
from audits.unlearning.task import Task


@UNLEARNERS.register("scrub")
@dataclass(frozen=True)
class Scrub(Unlearner):
    """Leave the original model on the forget set, stay with it on the retain set.

    Per epoch: while epoch < ``ascent_epochs`` (msteps), maximise KL_T(original ‖ student) on the forget set; then
    minimise γ·CE + α·KL_T on the retain set. KL_T is at temperature T, times T², mean over the batch. Teacher logits
    stay floats (Apollo's reference casts them to integers).
    """

    learning_rate: Positive = 5e-4
    epochs: Count = 6
    ascent_epochs: Count = 2
    gamma: NotNegative = 0.99
    alpha: NotNegative = 1e-3
    temperature: Positive = 4.0
    batch_size: Size = 64
    forget_batch_size: Size = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "adam"
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4

    def _update(self, task: Task) -> nn.Module:
        student, forget, retain = task.student, task.forget, task.retain
        optimizer = make_optimizer(student, self.tuning())
        order = task.generator(Purpose.ORDER)
        teacher_forget = teacher_logits(task.original, forget)
        teacher_retain = teacher_logits(task.original, retain)
        with task.dropout():
            for epoch in range(self.epochs):
                if epoch < self.ascent_epochs:
                    for rows in batches(len(forget), self.forget_batch_size, order):
                        x, _ = forget.batch(rows.to(forget.y.device))
                        optimizer.zero_grad(set_to_none=True)
                        output = student_logits(student, x)
                        (-divergence(output, teacher_forget[rows], self.temperature)).backward()
                        optimizer.step()
                for rows in batches(len(retain), self.batch_size, order):
                    x, y = retain.batch(rows.to(retain.y.device))
                    optimizer.zero_grad(set_to_none=True)
                    output = student_logits(student, x)
                    stay = divergence(output, teacher_retain[rows], self.temperature)
                    (self.gamma * F.cross_entropy(output, y) + self.alpha * stay).backward()
                    optimizer.step()
        return student

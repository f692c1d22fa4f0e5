"""SCRUB (Kurmanji et al., "Towards Unbounded Machine Unlearning", arXiv 2302.09880)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import at_once_on
from audits.errors import BadInput
from audits.seeds import Purpose
from audits.training.backward import Backward
from audits.training.loop import batches, make_optimizer, step
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.distillation import divergence, teacher_logits
from audits.unlearning.settings import Count, Fraction, Momentum, NotNegative, Positive, Size
from audits.unlearning.student import student_forward
from audits.unlearning.task import Task


@UNLEARNERS.register("scrub")
@dataclass(frozen=True)
class Scrub(Unlearner):
    """Leave the original model on the forget set, stay with it on the retain set.

    Per epoch: while epoch < ``ascent_epochs`` (msteps), maximise KL_T(original ‖ student) on the forget set; then
    minimise γ·CE + α·KL_T on the retain set. KL_T is at temperature T, times T², mean over the batch. Teacher logits
    stay floats (Apollo's reference casts them to integers).

    The authors' code also lowers the learning rate: behind each of ``decay_epochs`` (its ``lr_decay_epochs``, e.g. 5, 8
    and 9 of 10 epochs, counted from 1) it is multiplied by ``decay_rate``; none by default, as in Apollo's reference.
    Its first release adds ``smoothing``·Σ‖θ − θ̄‖ over the parameters to both losses (.5 in most notebooks, 0 in that
    for large scale); θ̄ is an average that begins behind the last epoch of all of them, and so the original weights, as
    here. The authors removed the term later. Their batches have a size of their own for each set, as
    ``forget_batch_size`` allows. They count epochs of ascent as here; a rewrite, ``scrub.py``, ascends once more.
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
    decay_epochs: tuple[int, ...] = ()
    decay_rate: Fraction = 0.1
    smoothing: NotNegative = 0.0

    def __post_init__(self) -> None:
        """Refuse epochs behind which no learning rate can fall."""
        super().__post_init__()
        object.__setattr__(self, "decay_epochs", tuple(self.decay_epochs))  # a plan's list
        odd = [epoch for epoch in self.decay_epochs if epoch < 1]
        if odd:
            raise BadInput(f"scrub.decay_epochs has {odd[0]}; allowed: epochs, counted from 1")

    def _update(self, task: Task) -> nn.Module:
        student, forget, retain = task.student, task.forget, task.retain
        optimizer = make_optimizer(student, self.tuning())
        order = task.generator(Purpose.ORDER)
        teacher_forget = teacher_logits(task.original, forget)
        teacher_retain = teacher_logits(task.original, retain)
        forward = student_forward(student, task.team)

        def away(x: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
            return self.smoothed(-divergence(forward(x, len(teacher)), teacher, self.temperature), task)

        def near(x: torch.Tensor, y: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
            output = forward(x, len(y))
            stay = divergence(output, teacher, self.temperature)
            return self.smoothed(self.gamma * F.cross_entropy(output, y) + self.alpha * stay, task)

        ascend, descend = (Backward(student, loss, task.team) for loss in (away, near))
        with task.dropout():
            steps = task.steps(optimizer, None, order)
            for epoch in steps.epochs(self.epochs):
                self.lower_rate(optimizer, epoch)
                if epoch < self.ascent_epochs:
                    left = list(steps.left(batches(len(forget), self.forget_batch_size, order)))
                    here = at_once_on(forget.y.device, left)
                    for rows, (x, _) in steps.each_step(zip(here, task.batches(forget, left), strict=True)):
                        step(ascend, optimizer, None, x, teacher_forget[rows])
                left = list(steps.left(batches(len(retain), self.batch_size, order)))
                here = at_once_on(retain.y.device, left)
                for rows, (x, y) in steps.each_step(zip(here, task.batches(retain, left), strict=True)):
                    step(descend, optimizer, None, x, y, teacher_retain[rows])
        return student

    def lower_rate(self, optimizer: torch.optim.Optimizer, epoch: int) -> None:
        """Set the learning rate of ``epoch``, counted from 0."""
        if self.decay_epochs:
            falls = sum(last <= epoch for last in self.decay_epochs)
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate * self.decay_rate**falls

    def smoothed(self, loss: torch.Tensor, task: Task) -> torch.Tensor:
        """Return ``loss`` plus ``smoothing``·Σ‖θ − θ_original‖, norm by norm over the parameters; no term at 0."""
        if not self.smoothing:
            return loss
        pairs = zip(task.student.parameters(), task.original.parameters(), strict=True)
        gaps = [torch.linalg.vector_norm(own - first.detach()) for own, first in pairs]
        return loss + self.smoothing * torch.stack(gaps).sum()

"""SalUn (Fan et al., "SalUn: Empowering Machine Unlearning via Gradient-based Weight Saliency", arXiv 2310.12508)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.seeds import Purpose
from audits.training.backward import Backward, Repeated
from audits.training.loop import batches, make_optimizer, make_schedule, step
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.mixture import Draws, Labels
from audits.unlearning.random_label import random_labels
from audits.unlearning.settings import Count, Fraction, Momentum, NotNegative, Positive, Size
from audits.unlearning.student import student_forward
from audits.unlearning.task import Task


@UNLEARNERS.register("salun")
@dataclass(frozen=True)
class SalUn(Unlearner):
    """Learn random labels on the forget set with the weights that matter most for it, hold all others.

    The mask keeps the ``fraction`` of all weights with the largest |Σ ∇CE| over the forget set at the original model
    (eval mode, one ranking over all parameters). Then CE on the retain set and the wrongly labelled forget set, in
    mixed batches. Weights outside the mask are put back and their momentum is cleared after every step, so they stay
    bit for bit what they were (Apollo's reference masks the gradient only, so weight decay moves the rest).
    BatchNorm running statistics are no weights: they follow the student's batches, as in the references and in
    fine-tuning.

    The authors' code draws labels from all classes (``labels``: any), anew for each epoch (``draws``: epoch). For
    CIFAR-100 and TinyImageNet it mixes both sets in its batches, for CIFAR-10 and SVHN each epoch goes through the
    forget set first and then through the retain set (``batches``: apart). It lowers the learning rate in steps, of
    which none comes in its ten epochs by default: ``schedule`` constant.
    """

    learning_rate: Positive = 7e-3
    epochs: Count = 10
    fraction: Fraction = 0.2
    batch_size: Size = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "sgd"
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4
    schedule: Literal["constant", "cosine"] = "cosine"
    batches: Literal["mixed", "apart"] = "mixed"
    labels: Labels = "wrong"
    draws: Draws = "once"

    def _update(self, task: Task) -> nn.Module:
        student, found = task.student, random_labels(task, self.labels, self.draws)
        data, task = found.data, task.beside("labels", found)
        keep = saliency_mask(student, task.forget, self.fraction)
        start = [parameter.detach().clone() for parameter in student.parameters()]
        optimizer = make_optimizer(student, self.tuning())
        schedule = make_schedule(optimizer, self.schedule, self.epochs)
        order = task.generator(Purpose.ORDER)
        forward = student_forward(student, task.team)
        held = Repeated(lambda: hold(student, keep, start, optimizer), student, task.team)
        backward = Backward(student, lambda x, y: F.cross_entropy(forward(x, len(y)), y), task.team)
        with task.dropout():
            steps = task.steps(optimizer, schedule, order)
            for _ in steps.epochs(self.epochs):
                left = list(steps.left(self.rows(len(task.retain), len(task.forget), order)))
                for x, y in steps.each_step(task.batches(data, left)):
                    step(backward, optimizer, None, x, y)
                    held()
                schedule.step()
                found.renew()
        return student

    def rows(self, retain: int, forget: int, order: torch.Generator) -> list[torch.Tensor]:
        """Return the batches of an epoch as places in the mixture, where ``forget`` points stand behind ``retain``."""
        if self.batches == "mixed":
            return batches(retain + forget, self.batch_size, order)
        first = [retain + rows for rows in batches(forget, self.batch_size, order)]
        return [*first, *batches(retain, self.batch_size, order)]


def saliency_mask(student: nn.Module, forget: TensorSet, fraction: float, chunk: int = 256) -> list[torch.Tensor]:
    """Return, for each parameter, where |Σ ∇CE| over ``forget`` is among the top ``fraction`` of all weights.

    At least one weight is kept; of equal ones the first. The model is read in eval mode and left in train mode.
    """
    student.eval()
    weights = list(student.parameters())
    total = [torch.zeros_like(weight) for weight in weights]
    for rows in torch.arange(len(forget), device=forget.y.device).split(chunk):
        x, y = forget.batch(rows)
        loss = F.cross_entropy(student(x), y, reduction="sum")
        for whole, part in zip(total, torch.autograd.grad(loss, weights, allow_unused=True), strict=True):
            if part is not None:
                whole += part
    student.train()
    size = torch.cat([part.abs().flatten() for part in total])
    kept = torch.zeros_like(size, dtype=torch.bool)
    kept[size.argsort(descending=True, stable=True)[: max(1, int(fraction * len(size)))]] = True
    parts = kept.split([weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]


@torch.no_grad()
def hold(
    student: nn.Module, keep: list[torch.Tensor], start: list[torch.Tensor], optimizer: torch.optim.Optimizer
) -> None:
    """Put the weights outside ``keep`` back to ``start`` and clear what the optimiser remembers of them."""
    for weight, inside, before in zip(student.parameters(), keep, start, strict=True):
        weight.copy_(torch.where(inside, weight, before))
        for name, moment in optimizer.state[weight].items():
            if name != "step" and isinstance(moment, torch.Tensor):
                moment.masked_fill_(~inside, 0.0)

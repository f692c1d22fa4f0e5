"""SFR-on (Huang et al., "Unified Gradient-Based Machine Unlearning with Remain Geometry Enhancement", 2409.19732)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.seeds import Purpose
from audits.training.backward import Backward
from audits.training.loop import batches, make_optimizer, make_schedule, step
from audits.unlearning.base import UNLEARNERS, Unlearner
from audits.unlearning.fisher import diagonal_fisher
from audits.unlearning.settings import Count, Momentum, NotNegative, Positive, Size
from audits.unlearning.student import student_forward
from audits.unlearning.task import Task


@UNLEARNERS.register("sfr_on")
@dataclass(frozen=True)
class SFROn(Unlearner):
    """Repair on the retain set in every iteration, ascend on the forget set along salient weights in some.

    Every ``forget_every``-th iteration, from the first on, begins with a step along −α_t·Σ_j w_j·CE_j of a forget
    batch: w_j ∝ CE_j^(−λ), detached, sum 1; α_t falls from ``ascent_weight`` to 0 along a cosine; the gradient is
    multiplied by the mask and clipped at ``clip_norm``. The mask keeps weights with F_forget ≥ γ·F_retain, diagonal
    Fisher information of single points (the reference squares gradients of batches). Both steps share the optimiser,
    whose momentum and weight decay reach all weights, and its cosine over the iterations, as in the reference. λ is
    ``loss_power``, γ ``fisher_ratio``; CE_j counts as no smaller than the resolution of its dtype, so that a point
    without loss cannot take all the weight.
    """

    learning_rate: Positive = 0.01
    iterations: Count = 1500
    forget_every: Size = 5
    ascent_weight: NotNegative = 25.0
    loss_power: NotNegative = 0.5
    fisher_ratio: NotNegative = 1.0
    clip_norm: Positive = 7.0
    batch_size: Size = 64
    forget_batch_size: Size = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "sgd"
    momentum: Momentum = 0.9
    weight_decay: NotNegative = 5e-4

    def _update(self, task: Task) -> nn.Module:
        student = task.student
        mask = fisher_mask(student, task.forget, task.retain, self.fisher_ratio)
        optimizer = make_optimizer(student, self.tuning(clip_norm=None))
        schedule = make_schedule(optimizer, "cosine", self.iterations)
        order = task.generator(Purpose.ORDER)
        forward = student_forward(student, task.team)

        def away(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return -weight * adaptive_entropy(forward(x, len(y)), y, self.loss_power)

        ascend = Backward(student, away, task.team, lambda: apply_mask(student, mask))
        repair = Backward(student, lambda x, y: F.cross_entropy(forward(x, len(y)), y), task.team)
        with task.dropout():
            steps = task.steps(optimizer, schedule, order)
            for _ in steps.epochs(1):
                left = list(steps.left(self.rows(task, order)))
                ascents = task.batches(task.forget, [rows for _, rows, _ in left if rows is not None])
                turns = zip(left, task.batches(task.retain, [rows for _, _, rows in left]), strict=True)
                for (iteration, ascent, _), retained in steps.each_step(turns):
                    if ascent is not None:
                        weight = self.ascent_weight * (1 + math.cos(math.pi * iteration / self.iterations)) / 2
                        x, y = next(ascents)
                        step(ascend, optimizer, self.clip_norm, x, y, x.new_full((), weight))
                    step(repair, optimizer, None, *retained)
                    schedule.step()
        return student

    def rows(self, task: Task, order: torch.Generator) -> Iterator[tuple[int, torch.Tensor | None, torch.Tensor]]:
        """Yield, for each iteration, its number, the forget batch if it begins with one, and the retain batch."""
        forget = endless(len(task.forget), self.forget_batch_size, task.generator(Purpose.FORGET_ORDER))
        retain = endless(len(task.retain), self.batch_size, order)
        for iteration in range(self.iterations):
            yield iteration, next(forget) if iteration % self.forget_every == 0 else None, next(retain)


def fisher_mask(student: nn.Module, forget: TensorSet, retain: TensorSet, ratio: float) -> list[torch.Tensor]:
    """Return, for each parameter, where the Fisher information of ``forget`` is at least ``ratio`` × ``retain``'s."""
    pairs = zip(diagonal_fisher(student, forget), diagonal_fisher(student, retain), strict=True)
    return [of_forget >= ratio * of_retain for of_forget, of_retain in pairs]


def adaptive_entropy(output: torch.Tensor, y: torch.Tensor, power: float) -> torch.Tensor:
    """Return Σ_j w_j·CE_j of logits (N, classes), w_j ∝ CE_j^(−power), detached and normalised to sum 1."""
    each = F.cross_entropy(output, y, reduction="none")
    raw = each.detach().clamp_min(torch.finfo(each.dtype).eps).pow(-power)
    return (raw / raw.sum() * each).sum()


def apply_mask(student: nn.Module, mask: list[torch.Tensor]) -> None:
    """Set the gradient to zero outside ``mask``."""
    for weight, inside in zip(student.parameters(), mask, strict=True):
        if weight.grad is not None:
            weight.grad.masked_fill_(~inside, 0.0)


def endless(points: int, size: int, order: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield the rows of batches for ever, in a fresh order on every pass."""
    while True:
        yield from batches(points, size, order)

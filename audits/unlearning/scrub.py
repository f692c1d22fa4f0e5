"""SCRUB (Kurmanji et al., "Towards Unbounded Machine Unlearning", arXiv 2302.09880)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.seeds import derive_seed, torch_generator
from audits.training.loop import batches, devices_of, logits, make_optimizer, make_schedule
from audits.training.recipe import Recipe
from audits.unlearning.base import Unlearner, unlearner


@unlearner("scrub")
@dataclass(frozen=True)
class Scrub(Unlearner):
    """Leave the original model on the forget set, stay with it on the retain set.

    Per epoch: while epoch < ``ascent_epochs`` (msteps), maximise KL_T(original ‖ student) on the forget set; then
    minimise γ·CE + α·KL_T on the retain set. KL_T is at temperature T, times T², mean over the batch. Teacher logits
    stay floats (Apollo's reference casts them to integers).
    """

    learning_rate: float = 5e-4
    epochs: int = 6
    ascent_epochs: int = 2
    gamma: float = 0.99
    alpha: float = 1e-3
    temperature: float = 4.0
    batch_size: int = 64
    forget_batch_size: int = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "adam"
    momentum: float = 0.9
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0:
            raise BadInput(f"scrub.temperature is {self.temperature}; it must be above 0")

    def _update(
        self,
        student: nn.Module,
        original: nn.Module,
        forget: TensorSet,
        retain: TensorSet,
        *,
        seed: int,
        recipe: Recipe | None,
        build: Callable[[int], nn.Module] | None,
    ) -> nn.Module:
        settings = Recipe(
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        optimizer = make_optimizer(student, settings)
        schedule = make_schedule(optimizer, "constant", self.epochs)
        order = torch_generator(derive_seed(seed, "order"))
        teacher_forget = teacher_logits(original, forget)
        teacher_retain = teacher_logits(original, retain)
        with torch.random.fork_rng(devices=devices_of(retain)):
            torch.manual_seed(derive_seed(seed, "dropout"))
            for epoch in range(self.epochs):
                if epoch < self.ascent_epochs:
                    for rows in batches(len(forget), self.forget_batch_size, order):
                        x, _ = forget.batch(rows.to(forget.y.device))
                        optimizer.zero_grad(set_to_none=True)
                        (-divergence(student(x), teacher_forget[rows], self.temperature)).backward()
                        optimizer.step()
                for rows in batches(len(retain), self.batch_size, order):
                    x, y = retain.batch(rows.to(retain.y.device))
                    optimizer.zero_grad(set_to_none=True)
                    output = student(x)
                    stay = divergence(output, teacher_retain[rows], self.temperature)
                    (self.gamma * F.cross_entropy(output, y) + self.alpha * stay).backward()
                    optimizer.step()
                schedule.step()
        return student


def teacher_logits(original: nn.Module, data: TensorSet) -> torch.Tensor:
    """Return the original model's logits (N, classes) on ``data``, in eval mode; the model itself is not touched."""
    teacher = copy.deepcopy(original).eval()
    return logits(teacher, data.x)


def divergence(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return KL(softmax(teacher/T) ‖ softmax(student/T)) · T², mean over the rows of two (N, classes) logit tables."""
    log_student = F.log_softmax(student / temperature, dim=1)
    log_teacher = F.log_softmax(teacher / temperature, dim=1)
    return F.kl_div(log_student, log_teacher, reduction="batchmean", log_target=True) * temperature**2

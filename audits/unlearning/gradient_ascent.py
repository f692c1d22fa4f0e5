"""Gradient ascent on the forget set (GA)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.seeds import derive_seed, torch_generator
from audits.training.loop import batches, make_optimizer, make_schedule
from audits.training.recipe import Recipe
from audits.unlearning.base import Unlearner, unlearner


@unlearner("gradient_ascent")
@dataclass(frozen=True)
class GradientAscent(Unlearner):
    """Minimise −CE on the forget set, with frozen BatchNorm statistics and a clipped gradient.

    The cosine schedule is stepped per epoch; ``schedule_per_batch`` steps it per batch, as Apollo's reference does.
    """

    learning_rate: float = 2e-4
    epochs: int = 10
    batch_size: int = 64
    momentum: float = 0.9
    weight_decay: float = 5e-4
    clip_norm: float = 0.1
    schedule_per_batch: bool = False

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
        optimizer = make_optimizer(student, sgd(self))
        schedule = make_schedule(optimizer, "cosine", self.epochs)
        order = torch_generator(derive_seed(seed, "order"))
        student.eval()
        for _ in range(self.epochs):
            for rows in batches(len(forget), self.batch_size, order):
                x, y = forget.batch(rows.to(forget.y.device))
                optimizer.zero_grad(set_to_none=True)
                (-F.cross_entropy(student(x), y)).backward()
                nn.utils.clip_grad_norm_(student.parameters(), self.clip_norm)
                optimizer.step()
                if self.schedule_per_batch:
                    schedule.step()
            if not self.schedule_per_batch:
                schedule.step()
        return student


def sgd(settings: GradientAscent) -> Recipe:
    """Return ``settings`` as a recipe of stochastic gradient descent."""
    return Recipe(
        optimizer="sgd",
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        batch_size=settings.batch_size,
        epochs=settings.epochs,
    )

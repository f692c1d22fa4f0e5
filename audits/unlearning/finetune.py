"""Fine-tuning on the retain set (FT)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from audits.data.tensors import TensorSet
from audits.training.loop import fit
from audits.training.recipe import Recipe
from audits.unlearning.base import Unlearner, unlearner


@unlearner("finetune")
@dataclass(frozen=True)
class FineTune(Unlearner):
    """Minimise CE on the retain set for a few epochs and hope that the forget set is forgotten meanwhile."""

    learning_rate: float = 0.01
    epochs: int = 10
    batch_size: int = 64
    optimizer: Literal["adamw", "adam", "sgd"] = "sgd"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: Literal["constant", "cosine"] = "cosine"

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
        tuning = Recipe(
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            batch_size=self.batch_size,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
        )
        return fit(student, retain, tuning, seed=seed)

"""No unlearning: the control for which the audit is plain membership inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from audits.data.tensors import TensorSet
from audits.training.recipe import Recipe
from audits.unlearning.base import Unlearner, unlearner


@unlearner("identity")
@dataclass(frozen=True)
class Identity(Unlearner):
    """Control: returns a copy of the model, so every attack on membership must find it."""

    copies: ClassVar[bool] = True

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
        return student

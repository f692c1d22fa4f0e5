"""Exact unlearning: train again, from scratch, on the retain set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.training.loop import train_model
from audits.training.recipe import Recipe
from audits.unlearning.base import Unlearner, unlearner


@unlearner("retrain")
@dataclass(frozen=True)
class Retrain(Unlearner):
    """Control: the target's own recipe from a fresh initialisation on the retain set; attacks must sit at chance."""

    trains_from_scratch: ClassVar[bool] = True

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
        if recipe is None or build is None:
            raise BadInput("retrain needs the target's recipe and architecture; pass recipe= and build=")
        return train_model(build, retain, recipe, seed)

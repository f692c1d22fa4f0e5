"""How a model is fitted: one frozen value, the same for target, shadow, retrained and contrast models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from audits.errors import BadInput


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a training run but its data, its architecture and its seed.

    ``epochs`` passes over the data; ``learning_rate`` the initial step size; ``momentum`` is read by SGD only;
    ``schedule`` is stepped once per epoch; ``label_smoothing`` in [0, 1); ``augment`` adds random shifts by up to
    ``augment_shift`` pixels and, with ``flip``, horizontal flips. Off by default, as in the reference of Apollo:
    the last epoch is kept and nothing is selected on held-out points.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 2e-3
    epochs: int = 60
    batch_size: int = 64
    weight_decay: float = 1e-2
    momentum: float = 0.9
    schedule: Literal["constant", "cosine"] = "constant"
    label_smoothing: float = 0.0
    clip_norm: float | None = None
    augment_shift: int = 0
    flip: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        positive("recipe.learning_rate", self.learning_rate)
        positive("recipe.batch_size", self.batch_size)
        not_negative("recipe.epochs", self.epochs)
        not_negative("recipe.weight_decay", self.weight_decay)
        not_negative("recipe.augment_shift", self.augment_shift)
        if not 0 <= self.momentum < 1:
            raise BadInput(f"recipe.momentum is {self.momentum}; allowed: 0 up to, but not, 1")
        if not 0 <= self.label_smoothing < 1:
            raise BadInput(f"recipe.label_smoothing is {self.label_smoothing}; allowed: 0 up to, but not, 1")
        if self.clip_norm is not None:
            positive("recipe.clip_norm", self.clip_norm)


def positive(field: str, value: float) -> None:
    """Refuse ``value`` unless it is above 0 and finite."""
    if not 0 < value < math.inf:
        raise BadInput(f"{field} is {value}; it must be above 0 and finite")


def not_negative(field: str, value: float) -> None:
    """Refuse ``value`` if it is below 0 or not finite."""
    if not 0 <= value < math.inf:
        raise BadInput(f"{field} is {value}; it must be 0 or more and finite")

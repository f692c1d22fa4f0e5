"""What every unlearning method shares: the call, the settings, the registry."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.registry import Registry
from audits.training.loop import check_finite
from audits.training.recipe import Recipe

UNLEARNERS: Registry[type[Unlearner]] = Registry("unlearning method")


@dataclass(frozen=True)
class Unlearner(ABC):
    """An unlearning method with its settings: a frozen dataclass whose fields are the settings.

    Calling ``unlearn`` never changes the model that it is given and returns a new one in eval mode.
    ``trains_from_scratch`` marks methods that ignore the given weights (retrain), ``copies`` those that change
    nothing (identity).
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    name: ClassVar[str]
    trains_from_scratch: ClassVar[bool] = False
    copies: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse numbers that no plan may hold, before anything is trained."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BadInput(f"{self.name}.{field.name} is {value}; it must be finite")
            if field.name == "momentum" and not 0 <= value < 1:
                raise BadInput(f"{self.name}.momentum is {value}; allowed: 0 up to, but not, 1")

    def unlearn(
        self,
        model: nn.Module,
        forget: TensorSet,
        retain: TensorSet,
        *,
        seed: int,
        recipe: Recipe | None = None,
        build: Callable[[int], nn.Module] | None = None,
    ) -> nn.Module:
        """Return a new model, in eval mode, that should behave as if ``forget`` had never been trained on.

        ``seed`` drives every random choice; ``recipe`` and ``build(seed)`` (a fresh model of the same architecture)
        are read by methods that train from scratch.
        """
        student = copy.deepcopy(model).requires_grad_(True).train()
        student = self._update(student, model, forget, retain, seed=seed, recipe=recipe, build=build)
        student.zero_grad(set_to_none=True)
        check_finite(student)
        return student.eval()

    @abstractmethod
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
        """Change ``student`` (a private copy of ``original``) and return it, or return another new model."""


U = TypeVar("U", bound=type[Unlearner])


def unlearner(name: str) -> Callable[[U], U]:
    """File an unlearning method under ``name``."""

    def file(cls: U) -> U:
        cls.name = name
        UNLEARNERS.register(name)(cls)
        return cls

    return file


def make_unlearner(name: str, settings: dict[str, Any]) -> Unlearner:
    """Return the method ``name`` with ``settings`` (its dataclass fields)."""
    return UNLEARNERS[name](**settings)

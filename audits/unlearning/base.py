"""The form of an unlearning method: the call, the settings, the registry."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models.finite import check_finite
from audits.registry import Registry
from audits.training.keeper import NEVER, Keeper
from audits.training.recipe import Recipe
from audits.training.team import ALONE, Team
from audits.unlearning.settings import check_settings
from audits.unlearning.task import Task

if TYPE_CHECKING:
    from torch import nn

UNLEARNERS: Registry[type[Unlearner]] = Registry(
    "unlearning method", "audits.unlearning", own="audits.unlearning.own:adapted", group="orch.unlearners"
)


@dataclass(frozen=True)
class Unlearner(ABC):
    """An unlearning method with its settings: a frozen dataclass whose fields are the settings.

    Calling ``unlearn`` never changes the model that it is given and returns a new one in eval mode. What a number may
    be stands in its annotation (``audits.unlearning.settings``). ``trains_from_scratch`` marks methods that ignore the
    given weights (retrain), ``copies`` those that change nothing (identity); ``reads_forget`` and ``reads_retain`` say
    which sets decide the result. ``own``: a user's code, which is given a copy of the original, too.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    name: ClassVar[str]
    trains_from_scratch: ClassVar[bool] = False
    copies: ClassVar[bool] = False
    reads_forget: ClassVar[bool] = True
    reads_retain: ClassVar[bool] = True
    own: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse numbers that no plan may hold, before anything is trained."""
        check_settings(self)

    def unlearn(
        self,
        model: nn.Module,
        forget: TensorSet,
        retain: TensorSet,
        *,
        seed: int,
        recipe: Recipe | None = None,
        build: Callable[[int], nn.Module] | None = None,
        keeper: Keeper = NEVER,
        team: Team = ALONE,
    ) -> nn.Module:
        """Return a new model, in eval mode, that should behave as if ``forget`` had never been trained on.

        ``seed`` drives every random choice; ``recipe`` and ``build(seed)`` (a fresh model of the same architecture)
        are read by methods that start from a fresh model. A method that takes steps goes on from where ``keeper`` has
        it; what it works out before the first one (masks, answers of teachers) is worked out again. ``team``: the
        workers that take its steps together, which all call this; what comes before, and a user's own method, every
        one of them does by itself. Raises ``BadInput`` when a set that the method reads is empty or something that it
        needs was not given, ``FloatingPointError`` when the weights do not stay finite.
        """
        for kind, data, read in (("forget", forget, self.reads_forget), ("retain", retain, self.reads_retain)):
            if read and len(data) == 0:
                raise BadInput(f"{self.name} reads the {kind} set, which is empty; give at least one point")
        student = copy.deepcopy(model).requires_grad_(True).train()
        original = copy.deepcopy(model) if self.own else model
        student = self._update(Task(student, original, forget, retain, seed, recipe, build, keeper, team))
        student.zero_grad(set_to_none=True)
        check_finite(student)
        return student.eval()

    @abstractmethod
    def _update(self, task: Task) -> nn.Module:
        """Change ``task.student`` and return it, or return another new model."""

    def tuning(self, **fixed: Any) -> Recipe:
        """Return the settings that a recipe has too (optimiser, learning rate, epochs, …) as one, ``fixed`` on top."""
        names = {field.name for field in fields(Recipe)} & {field.name for field in fields(self)}
        return Recipe(**{name: getattr(self, name) for name in names} | fixed)


def make_unlearner(name: str, settings: dict[str, Any]) -> Unlearner:
    """Return the method ``name`` with ``settings`` (its dataclass fields)."""
    return UNLEARNERS[name](**settings)

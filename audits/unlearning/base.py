"""What every unlearning method shares: the call, the task, the settings, the registry."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.registry import Registry
from audits.seeds import derive_seed, torch_generator
from audits.training.loop import check_finite, devices_of
from audits.training.recipe import Recipe
from audits.unlearning.settings import check_settings

UNLEARNERS: Registry[type[Unlearner]] = Registry("unlearning method")


@dataclass(frozen=True)
class Task:
    """One model that should forget: everything that a method may read.

    ``student`` is a private copy of ``original``, trainable and in train mode, the only thing that a method may
    change. ``recipe`` is the target's own, ``build(seed)`` returns a fresh model of its architecture on the CPU; both
    are None when the caller did not give them. Both sets stand on one device, that of the models.
    """

    student: nn.Module
    original: nn.Module
    forget: TensorSet
    retain: TensorSet
    seed: int
    recipe: Recipe | None = None
    build: Callable[[int], nn.Module] | None = None

    def generator(self, purpose: str) -> torch.Generator:
        """Return a CPU generator for one purpose (``order`` of the batches, random ``labels``)."""
        return torch_generator(derive_seed(self.seed, purpose))

    @contextmanager
    def dropout(self) -> Iterator[None]:
        """Seed the global generators that Dropout reads, and give them back as they were."""
        devices = devices_of(self.retain)
        seed = derive_seed(self.seed, "dropout")
        with torch.random.fork_rng(devices=devices):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU's generator too
            for device in devices:
                torch.cuda.default_generators[device.index].manual_seed(seed)
            yield


@dataclass(frozen=True)
class Unlearner(ABC):
    """An unlearning method with its settings: a frozen dataclass whose fields are the settings.

    Calling ``unlearn`` never changes the model that it is given and returns a new one in eval mode. What a number may
    be stands in its annotation (``audits.unlearning.settings``). ``trains_from_scratch`` marks methods that ignore the
    given weights (retrain), ``copies`` those that change nothing (identity); ``reads_forget`` and ``reads_retain`` say
    which sets decide the result.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    name: ClassVar[str]
    trains_from_scratch: ClassVar[bool] = False
    copies: ClassVar[bool] = False
    reads_forget: ClassVar[bool] = True
    reads_retain: ClassVar[bool] = True

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
    ) -> nn.Module:
        """Return a new model, in eval mode, that should behave as if ``forget`` had never been trained on.

        ``seed`` drives every random choice; ``recipe`` and ``build(seed)`` (a fresh model of the same architecture)
        are read by methods that start from a fresh model. Raises ``BadInput`` when a set that the method reads is
        empty or something that it needs was not given, ``FloatingPointError`` when the weights do not stay finite.
        """
        for kind, data, read in (("forget", forget, self.reads_forget), ("retain", retain, self.reads_retain)):
            if read and len(data) == 0:
                raise BadInput(f"{self.name} reads the {kind} set, which is empty; give at least one point")
        student = copy.deepcopy(model).requires_grad_(True).train()
        student = self._update(Task(student, model, forget, retain, seed, recipe, build))
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

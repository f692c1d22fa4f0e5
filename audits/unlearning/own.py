"""Unlearning methods of users' own: a function ``forget(model, forget, retain, seed, …)``, or an ``Unlearner``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from audits.data.tensors import devices_of
from audits.errors import BadInput
from audits.own.generators import seeded
from audits.own.settings import fields_of, given, modules_behind, parameters_of
from audits.own.subclasses import subclass
from audits.unlearning.base import Unlearner
from audits.unlearning.task import Task

GIVEN = ("model", "original", "forget", "retain", "seed", "recipe", "build")
"""Parameters that are filled in; all others of the signature are settings."""


class OwnUnlearner(Unlearner):
    """What a user's function does; the parameters of its signature that are not filled in are the settings.

    Filled in, as far as the function has them: ``model``, a copy to change; ``original``; ``forget`` and ``retain``
    (``TensorSet``); ``seed``; ``recipe`` and ``build(seed)`` of the target. The global generators are seeded.
    """

    made_by: ClassVar[Callable[..., Any]]
    given: ClassVar[tuple[str, ...]]

    def _update(self, task: Task) -> nn.Module:
        whole = {
            "model": task.student,
            "original": task.original,
            "forget": task.forget,
            "retain": task.retain,
            "seed": task.seed,
            "recipe": task.recipe,
            "build": task.build,
        }
        made_by = type(self).made_by
        named = parameters_of(made_by)
        with seeded(task.seed, devices_of(task.retain)):
            found = made_by(
                **{name: value for name, value in whole.items() if name in named}, **given(self, type(self).given)
            )
        found = task.student if found is None else found  # changed in place
        check_kept(self.name, task.original, found)
        model: nn.Module = found.to(task.retain.y.device).requires_grad_(True)
        return model


def check_kept(name: str, original: nn.Module, found: object) -> None:
    """Refuse what is no model of the original's weights: the store keeps those, and the plan says what reads them."""
    if not isinstance(found, nn.Module):
        raise BadInput(f"unlearning: {name} returned {type(found).__name__}; needed: a torch.nn.Module, or None")
    before, after = shapes(original), shapes(found)
    for key in [*before, *after]:
        if before.get(key) != after.get(key):
            raise BadInput(
                f"unlearning: {name} returned a model with {key} of shape {after.get(key, 'none')}, but the original's "
                f"is {before.get(key, 'none')}; keep the architecture"
            )


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what a model keeps, by name."""
    return {key: tuple(value.shape) for key, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


def adapted(found: Any, name: str) -> type[Unlearner]:
    """Return the unlearning method behind the object ``found``, which a plan calls ``name``."""
    if isinstance(found, type):
        method = subclass(found, name, Unlearner, "unlearning method")
        type.__setattr__(method, "own", True)
        return method
    if not callable(found):
        raise BadInput(f"unlearning method {name} is {type(found).__name__}; needed: a function or an Unlearner")
    own = fields_of(found, f"unlearning method {name}", GIVEN)
    named = parameters_of(found)
    kind = make_dataclass(
        getattr(found, "__name__", "Own"),
        own,
        bases=(OwnUnlearner,),
        frozen=True,
        kw_only=True,
        namespace={
            "name": name,
            "own": True,
            "made_by": staticmethod(found),
            "given": tuple(each for each, _, _ in own),
            "made_of": (__name__, *modules_behind(found, name)),
            "reads_forget": "forget" in named,
            "reads_retain": "retain" in named,
            "trains_from_scratch": not named & {"model", "original"},
            "__doc__": found.__doc__ or "",
        },
    )
    kind.__module__ = __name__
    return kind

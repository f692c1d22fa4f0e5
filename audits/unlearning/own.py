"""Unlearning methods of users' own: a function ``forget(model, forget, retain, seed, …)``, or an ``Unlearner``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, ClassVar

from torch import nn

from audits.data.tensors import devices_of
from audits.errors import BadInput
from audits.models.kept import check_kept
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
        check_kept(f"unlearning: {self.name}", task.original, found)
        model: nn.Module = found.to(task.retain.y.device).requires_grad_(True)
        return model


def adapted(found: Any, name: str, module: str = "") -> type[Unlearner]:
    """Return the unlearning method behind the object ``found``, which a plan calls ``name``; ``module`` offers it."""
    if isinstance(found, type):
        method = subclass(found, name, Unlearner, "unlearning method", module)
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
            "made_of": (__name__, *modules_behind(found, name, module)),
            "reads_forget": "forget" in named,
            "reads_retain": "retain" in named,
            "trains_from_scratch": not named & {"model", "original"},
            "__doc__": found.__doc__ or "",
        },
    )
    kind.__module__ = __name__
    return kind

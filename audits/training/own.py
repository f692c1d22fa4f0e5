"""Training by users' own code, in the place of our loop: ``recipe.fit: python:module:name``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from audits.data.tensors import TensorSet, devices_of
from audits.errors import BadInput, did_you_mean
from audits.models.finite import check_finite
from audits.models.kept import check_kept
from audits.own.code import load
from audits.own.generators import seeded
from audits.own.settings import parameters_of
from audits.training.recipe import Recipe

GIVEN = ("model", "data", "seed")


def fit_by_own(model: nn.Module, data: TensorSet, recipe: Recipe, seed: int) -> nn.Module:
    """Return what the code that ``recipe.fit`` names makes of ``model``, or of the data alone, in eval mode.

    It is called with those of ``model``, ``data`` (a ``TensorSet``) and ``seed`` that it has parameters for, with the
    fields of the recipe of which the same holds, and with ``recipe.settings``. The global generators are seeded. It
    returns a model with the weights of the plan's architecture, or None after it has changed ``model`` in place. Raises
    BadInput otherwise, and where a frozen weight has moved.
    """
    frozen = {name: value.detach().clone() for name, value in model.named_parameters() if not value.requires_grad}
    call, named = called(recipe)
    values: dict[str, Any] = {"model": model, "data": data, "seed": seed}
    values |= {field.name: getattr(recipe, field.name) for field in fields(recipe)}
    with seeded(seed, devices_of(data)):
        found = call(**{name: value for name, value in values.items() if name in named} | dict(recipe.settings))
    found = model if found is None else found
    check_kept(f"recipe.fit: {recipe.fit}", model, found)
    trained: nn.Module = found.to(data.y.device)
    after = dict(trained.named_parameters())
    moved = [name for name, value in frozen.items() if not torch.equal(after[name].detach(), value)]
    if moved:
        raise BadInput(
            f"recipe.fit: {recipe.fit} moved {moved[0]}, which is frozen; train what has requires_grad alone"
        )
    for name, value in trained.named_parameters():
        value.requires_grad_(name not in frozen)
    trained.zero_grad(set_to_none=True)
    check_finite(trained)
    return trained.eval()


def called(recipe: Recipe) -> tuple[Callable[..., Any], set[str]]:
    """Return what ``recipe.fit`` calls, and the names of its parameters; raises BadInput where that cannot work."""
    assert recipe.fit is not None, "only a recipe that names code has some"
    found = load(recipe.fit)
    if isinstance(found, type) and hasattr(found, "fit"):
        found = found()
    call = getattr(found, "fit", found)
    if not callable(call):
        raise BadInput(f"recipe.fit: {recipe.fit} is {type(found).__name__}; needed: a function, or an object with fit")
    named = parameters_of(call)
    if "data" not in named:
        raise BadInput(
            f"recipe.fit: {recipe.fit} has no parameter `data`; needed: fit(data, seed) or fit(model, data, …)"
        )
    for name in recipe.settings:
        if name not in named or name in GIVEN:
            own = sorted(named - set(GIVEN))
            raise BadInput(
                f"recipe.settings.{name} is no parameter of {recipe.fit}{did_you_mean(name, own)}; it has: "
                f"{', '.join(own) or 'none'}"
            )
    return call, named

"""Checks of a plan against its data set that every kind of audit needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.data.catalogue import describe, load
from audits.data.groups import read_groups
from audits.data.ids import Points, folder_of
from audits.data.tensors import WHERE
from audits.errors import BadInput, did_you_mean
from audits.models.base import MODELS
from audits.models.own import tried
from audits.training.own import called
from audits.training.private import check_private
from orchestrator.engine.plan.errors import shown, under

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from audits.data.dataset import Description
    from audits.training.recipe import Recipe
    from orchestrator.engine.plan.sections import Data, Model


def class_indices(given: Any, names: Sequence[str], field: str) -> tuple[int, ...]:
    """Return the indices of classes that a plan names: null, even, odd, or a list; ``BadInput`` for unknown ones."""
    if given is None:
        return tuple(range(len(names)))
    if given in ("even", "odd"):
        return tuple(range(0 if given == "even" else 1, len(names), 2))
    found = []
    for one in given:
        if isinstance(one, int) and 0 <= one < len(names):
            found.append(one)
        elif one in names:
            found.append(list(names).index(one))
        else:
            raise BadInput(
                f"{field} has {shown(one)}{did_you_mean(str(one), names)}; allowed: 0 to {len(names) - 1}, or names"
            )
    return tuple(sorted(set(found)))


def facts_of(data: Data, absent: bool) -> Description:
    """Return what is known of a data set; ``BadInput`` when it is not there (``absent``: nor its size known).

    The file of its groups, if there is one, is read too.
    """
    facts = describe(data.name, data.root)
    known = facts.points and facts.shape and facts.classes
    if not facts.present and not (absent and known and data.root is None):
        raise facts.missing()
    if data.groups is not None and facts.points:
        read_groups(data.groups, points_in(data, facts))
    return facts


def points_in(data: Data, facts: Description) -> Points:
    """Return the points of a data set as lists name them; its names are read only if a list has some."""
    return Points(facts.points, lambda: load(data.name, data.root).names, folder_of(data.name, data.root))


def check_build(model: Model, recipe: Recipe, facts: Description, section: str) -> None:
    """Refuse an architecture that does not fit the data or its recipe; ``section`` of the plan names it."""
    try:
        built = build_without_numbers(model, facts.shape, len(facts.classes))
        if recipe.fit is not None:
            called(recipe)
        if recipe.random_crop is not None and not facts.encoded:
            raise BadInput(f"recipe.random_crop needs images at full size, but {facts.name} is held scaled; {WHERE}")
        if recipe.private:
            check_private(built, recipe.private_engine)
    except BadInput as error:
        raise BadInput(under(section, str(error))) from None


def build_without_numbers(model: Model, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a model whose weights have shapes alone, so that a wide one costs as little as a small one.

    One of the user's own is tried out besides, on the CPU if its code cannot do without numbers.
    """
    import torch

    architecture = model.architecture()
    if MODELS.is_own(model.name):
        return tried(architecture, shape, classes)
    with torch.device("meta"):
        return architecture.build(shape, classes, seed=0)

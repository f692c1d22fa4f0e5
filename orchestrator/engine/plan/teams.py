"""Recipes that several workers cannot train a model by together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from audits.training.recipe import Recipe
    from orchestrator.engine.plan.base import BasePlan


def team_problems(plan: BasePlan, recipes: Mapping[str, Recipe | None]) -> list[str]:
    """Return why workers cannot train a model of the plan together: ``recipes``, by their fields, that only one can."""
    asked = f"compute.workers_per_model is {plan.compute.workers_per_model}"
    lines = []
    for field, recipe in recipes.items() if plan.compute.workers_per_model > 1 else ():
        if recipe is not None and recipe.private:
            lines.append(f"{asked}, but {field} is private (DP-SGD), which one worker trains by itself; leave one out")
        if recipe is not None and recipe.fit is not None:
            lines.append(f"{asked}, but {field}.fit is a user's own training, which one worker does; leave one out")
    return lines

"""Checks of a toy plan, and of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audits.errors import BadInput
from audits.models import MODELS
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.components import completed
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.engine.plan.fits import check_build, facts_of
from tests.orchestrator.toy.plan import ToyPlan


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> ToyPlan:
    """Return the checked plan of a plain mapping; the model's settings are completed."""
    plan = validated(ToyPlan, raw)
    settings, problems = completed(MODELS, plan.model.name, plan.model.settings, "model.name", "model.settings")
    if problems:
        raise PlanProblems(problems)
    whole = plan.model_copy(update={"model": plan.model.model_copy(update={"settings": settings})})
    return whole.made_by(RULES, notes)


def weaknesses(plan: ToyPlan) -> tuple[str, ...]:
    """Return what will weaken the result."""
    return ("split.targets is 1: nobody sees how much models differ",) if plan.split.targets == 1 else ()


def check_data(plan: ToyPlan, absent: bool) -> None:
    """Refuse a plan whose data are not there, are too few, or do not fit the model."""
    facts = facts_of(plan.data, absent)
    if facts.points and 2 * plan.split.train_size > facts.points:
        raise BadInput(f"split.train_size: two halves of {plan.split.train_size}, but there are {facts.points} points")
    check_build(plan.model, plan.recipe, facts, "model")


RULES = Rules(checked, weaknesses)

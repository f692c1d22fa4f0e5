"""The plan of the toy audit (``audit.kind: toy``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from audits.training.recipe import Recipe
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sections import Compute, Data, Model, Positive, Section, Tracking


class Audit(Section):
    """``attacks``: scores that speak of each point, from the class that a model gives it, or from its loss.

    ``level``: of intervals.
    """

    kind: Literal["toy"] = "toy"
    attacks: Annotated[tuple[Literal["loss", "right"], ...], Field(min_length=1)] = ("loss", "right")
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


class Split(Section):
    """``targets`` models, each trained on ``train_size`` of one pool of twice as many points."""

    targets: Positive = 3
    train_size: Positive = 40


class ToyPlan(BasePlan):
    """A whole plan of a toy audit."""

    audit: Audit = Audit()
    data: Data = Data(name="digits")
    split: Split = Split()
    model: Model = Model()
    recipe: Recipe = Recipe()
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0

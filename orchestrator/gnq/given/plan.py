"""The plan of a GNQ audit of a given model: ``audit.kind: gnq`` with a section ``target``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sections import Compute, Data, Model, Section, Share, Tracking
from orchestrator.engine.plan.target import Checkpoints

KIND = "gnq-target"
"""The name of this kind of audit where plans with and without a target must be told apart."""


class Audit(Section):
    """How the points are scored.

    ``modes``: of gradient uniqueness, the first one ranks (ridge or pinv); ``ridge``: λ in units of the mean of ‖g‖²
    (diagonal: of one parameter's g²); ``points``: how many training points are scored at most, among each other, drawn
    at random where there are more; ``controls``: how many points that the model was not trained on are scored in the
    same way, null for as many, 0 for none; ``leverage``: from which leverage GNQ/(1 + GNQ) on a point counts as
    exposed (¾ is a GNQ of 3, and one bit at one look); ``level``: of intervals.
    """

    kind: Literal["gnq"] = "gnq"
    """The kind of audit."""
    modes: Annotated[tuple[str, ...], Field(min_length=1)] = ("ridge", "diagonal")
    ridge: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-3
    points: Annotated[int, Field(ge=2)] = 5000
    controls: Annotated[int, Field(ge=0)] | None = None
    leverage: Share = 0.75
    level: Share = 0.95


class GivenPlan(BasePlan):
    """A whole plan of a GNQ audit of a given model."""

    audit: Audit = Audit()
    data: Data = Data()
    model: Model = Model()
    target: Checkpoints
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0
    """Every random choice is derived from it."""

    @property
    def kind(self) -> str:
        """The kind of audit: another one than that of plans without a target."""
        return KIND

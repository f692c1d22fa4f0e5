"""A GNQ plan with a target laid out on its data: the points that are scored, in two groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from audits.arrays import Ids
from audits.data.ids import Points
from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator
from audits.targets.members import read_members
from audits.targets.weights import Weights, notes_of, read_weights
from audits.uniqueness.bits import trapezoid_weights
from orchestrator.engine.plan.errors import under
from orchestrator.engine.plan.fits import build_without_numbers
from orchestrator.gnq.given.plan import GivenPlan

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.jobs.job import Job

Group = Literal["members", "controls"]
GROUPS: tuple[Group, ...] = ("members", "controls")
"""Points that the model was trained on, and points that it was not, scored in the same way."""

LEAST = 2
"""Points of a group: each is measured against others."""


class GivenDesign(ABC):
    """Lays one plan with a target out on one data set."""

    if TYPE_CHECKING:
        plan: GivenPlan
        data: Dataset
        device: str

    @abstractmethod
    def look_jobs(self, given: str, group: Group, count: int) -> list[Job]:
        """Return the jobs that look at ``count`` points of a group, a job a checkpoint, from the artefact ``given``."""

    @cached_property
    def members(self) -> Ids:
        """The points that the model was trained on."""
        return read_members(self.plan.target.members, Points.of(self.data, self.plan.data.root))

    @cached_property
    def checkpoints(self) -> tuple[Weights, ...]:
        """The weights of the model, in the order of the plan."""
        shaped = build_without_numbers(self.plan.model, self.data.shape, len(self.data.classes))
        return tuple(read_weights(file, shaped) for file in self.plan.target.checkpoints)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know about the design: what was changed in reading the weights."""
        return notes_of(self.checkpoints)

    def scored(self, members: Ids, group: Group) -> Ids:
        """Return the ids (n,), sorted, of the points of a group that are scored; none of controls without any.

        Members: all, or ``audit.points`` drawn at random. Controls: as many, or ``audit.controls``, drawn at random
        from the points of the data set that are no members.
        """
        most = min(len(members), self.plan.audit.points)
        if group == "members":
            return self.drawn(members, most, group)
        wanted = self.plan.audit.controls
        others = np.setdiff1d(np.arange(len(self.data), dtype=np.int64), members, assume_unique=True)
        count = min(len(others), most if wanted is None else min(wanted, most))
        return self.drawn(others, count if count >= LEAST else 0, group)

    def drawn(self, ids: Ids, count: int, group: Group) -> Ids:
        """Return ``count`` of ``ids``, sorted: all of them, or drawn at random."""
        if count == len(ids):
            return ids
        order = numpy_generator(derive_seed(self.plan.seed, "given target", group)).permutation(len(ids))
        return np.sort(ids[order[:count]])

    @cached_property
    def weights_of_steps(self) -> tuple[float, ...] | None:
        """How many steps each checkpoint stands for, None where each counts once."""
        steps = self.plan.target.steps
        return None if steps is None else tuple(trapezoid_weights(steps).tolist())

    def build(self) -> Any:
        """Return an untrained model of the plan's architecture."""
        try:
            return self.plan.model.architecture().build(self.data.shape, len(self.data.classes), 0)
        except BadInput as error:
            raise BadInput(under("model", str(error))) from None

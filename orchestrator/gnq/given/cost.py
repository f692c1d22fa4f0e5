"""The cost of a GNQ plan with a target before it runs: its looks, tried on a few points where they will take long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from audits.training.recipe import Recipe
from audits.uniqueness.scores import needs_gram
from orchestrator.engine.cost.timing import LOOK, TrainingProbe
from orchestrator.engine.queries import Queries
from orchestrator.gnq.given.outlook import of_look

if TYPE_CHECKING:
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.plan.sections import Model
    from orchestrator.gnq.given.plan import GivenPlan

BATCH = Recipe(batch_size=50)
"""A training step that is timed; its points are what passes are counted in."""
PAIRS = 1000
"""Points at which a look takes ``LOOK`` times as long as a training epoch on them; pairs grow with their square."""


class GivenProbe(TrainingProbe):
    """Seconds of wide looks, tried on a few points; others are worth some training steps, a few of which are timed.

    A stated throughput of training is used for all of them.
    """

    makes_models = ()

    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return the given architecture, and the step that is timed."""
        return self.plan.model, BATCH

    def points(self) -> int:
        """Return the points of the step that is timed: the plan has no training set of its own."""
        return BATCH.batch_size

    def seconds(self, job: Job) -> float:
        """Return the seconds that a job takes on one worker."""
        if job.stage == "look" and self.timings.images_per_second is None:
            found = of_look(self.plan, self.device, job)
            if found is not None:
                return found.seconds
        return super().seconds(job)

    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps: a look is worth some, for each mode."""
        if job.stage != "look":
            return 0.0
        points, modes = job.document["count"], tuple(job.document["modes"])
        pairs = max(1.0, points / PAIRS) if needs_gram(modes) else 1.0
        return float(points / recipe.batch_size * LOOK * (pairs + len(modes) - 1))

    def size(self, job: Job) -> int:
        """Return the bytes of a job's artefact: of the given weights, else nothing worth counting."""
        return self.measure(*self.fitting(job))[1] * len(job.document["weights"]) if job.stage == "given" else 0


def queries(settings: Sequence[tuple[GivenPlan, Sequence[Job]]]) -> Iterator[Queries]:
    """Yield nothing: the weights are read, and nobody is asked."""
    yield from ()

"""The cost of a toy plan before it runs: training steps, and one pass over the pool a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from audits.training.recipe import Recipe
from orchestrator.engine.cost.timing import TrainingProbe
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.plan.sections import Model
from orchestrator.engine.queries import Queries
from tests.orchestrator.toy.plan import ToyPlan


class ToyProbe(TrainingProbe):
    """Seconds per unit of a toy plan, guessed from a few training steps."""

    makes_models = ("train",)

    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return architecture and recipe of the models that a job makes or reads."""
        return self.plan.model, self.plan.recipe

    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps."""
        epoch = self.plan.split.train_size / recipe.batch_size
        return float(epoch * (recipe.epochs if job.stage == "train" else 1))


def queries(settings: Sequence[tuple[ToyPlan, Sequence[Job]]]) -> Iterator[Queries]:
    """Yield the queries of each attack: one a point of the pool."""
    total: dict[str, int] = {}
    for plan, _ in settings:
        for attack in plan.audit.attacks:
            total[attack] = total.get(attack, 0) + 2 * plan.split.train_size * plan.split.targets
    for name, count in total.items():
        yield Queries(name, "posteriors", 2 * settings[0][0].split.train_size, count)

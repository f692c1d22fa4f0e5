"""The cost of a membership plan before it runs: training steps, forward passes, label queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from audits.mia.attacks import MIA_ATTACKS
from orchestrator.engine.cost.timing import FORWARD, TrainingProbe
from orchestrator.engine.queries import Queries
from orchestrator.mia.stages.walking import SCHEDULES

if TYPE_CHECKING:
    from audits.training.recipe import Recipe
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.plan.sections import Model
    from orchestrator.mia.plan import MiaPlan


class MiaProbe(TrainingProbe):
    """Seconds per unit of a membership plan, guessed from a few training steps."""

    makes_models = ("given", "train")

    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return architecture and recipe of the models that a job makes, or mostly reads: targets' or shadows'."""
        plan = self.plan
        shadows = job.stage == "ask" or "-shadow-" in job.member
        if not shadows:
            return plan.model, plan.recipe
        return plan.shadow_model or plan.model, plan.shadow_recipe or plan.recipe

    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps of the recipe's batch size."""
        split, batch = self.plan.split, recipe.batch_size
        points = job.document.get("points", 2 * split.train_size + split.test)
        match job.stage:
            case "given":
                return 0.0
            case "train":
                return float(recipe.epochs * math.ceil(job.document["count"] / batch))
            case "ask":
                return float(
                    FORWARD
                    * sum(len(job.document[group]) for group in ("judged", "shadows", "strangers"))
                    * points
                    / batch
                )
            case "walk":
                asked = 2 * int(job.document["count"]) * SCHEDULES[job.document["schedule"]].queries
                return float(FORWARD * len(job.document["judged"]) * asked / batch)
            case _:
                return float(FORWARD * (split.shadows + 2) * points / batch)


def queries(settings: Sequence[tuple[MiaPlan, Sequence[Job]]]) -> Iterator[Queries]:
    """Yield, per attack, how often targets are asked in all ``settings``: about pool and known non-members.

    Of a plan with a target it alone is counted, not the own models beside it.
    """
    total: dict[str, int] = {}
    most: dict[str, int] = {}
    for plan, jobs in settings:
        asked, targets = plan.audit.hop_skip_jump, 2 * plan.split.pools if plan.target is None else 1
        points = [int(job.document["points"]) for job in jobs if job.stage == "ask" and "points" in job.document]
        for attack in plan.audit.attacks:
            each = points[0] if points else 2 * plan.split.train_size + plan.split.test
            if MIA_ATTACKS[attack].subset:
                each = 2 * asked.points * SCHEDULES[asked.schedule].queries
            total[attack] = total.get(attack, 0) + targets * each
            most[attack] = max(most.get(attack, 0), each)
    for attack, count in total.items():
        yield Queries(attack, MIA_ATTACKS[attack].access, most[attack], count)

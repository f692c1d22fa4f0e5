"""The cost of a GNQ plan before it runs: training steps, Gram matrices, forward passes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from audits.gnq.attacks import POOL_ATTACKS
from audits.gnq.gradient_inversion.settings import ANALYTIC
from audits.uniqueness.scores import needs_gram
from orchestrator.engine.cost.timing import LOOK, TrainingProbe
from orchestrator.engine.queries import Queries

if TYPE_CHECKING:
    from audits.training.recipe import Recipe
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.plan.sections import Model
    from orchestrator.gnq.plan import GnqPlan

TWICE = 10
"""Training steps on as many points that a gradient of their gradients, weights apart for each problem, is worth."""


class GnqProbe(TrainingProbe):
    """Seconds per unit of a GNQ plan, guessed from a few training steps."""

    makes_models = ("train", "defend")

    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return architecture and recipe of the models that a job makes or asks."""
        defence = self.plan.arms.get(job.label) if job.stage == "defend" else None
        return self.plan.model, (defence.recipe if defence else None) or self.plan.recipe

    def size(self, job: Job) -> int:
        """Return the bytes of a job's artefact: a model, one for each look beside it, or rows of a Gram matrix."""
        if job.document.get("kind") == "apart":
            return int(super().size(job) * (self.plan.audit.checkpoints + 2))
        if job.document.get("kind") == "rows":
            low, high = job.document["settings"]["rows"]
            return int(8 * (high - low) * (job.document["count"] - low))
        return super().size(job)

    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps of the recipe's batch size."""
        split, audit = self.plan.split, self.plan.audit
        epoch = math.ceil(split.train_size / recipe.batch_size)
        match job.stage:
            case "look":
                return float(epoch * LOOK * looked(job))
            case "train" if job.document.get("kind") == "apart":
                return float(epoch * recipe.epochs * (1 + job.document.get("held_out", 0) / 2))
            case "train":
                looks = audit.checkpoints + 1 + (recipe.epochs if job.document.get("in_batch") else 0)
                more = recipe.epochs * job.document.get("held_out", 0) / 2  # on half of the points each
                return float(epoch * (recipe.epochs + more + LOOK * len(audit.modes) * looks))
            case "defend":
                return float(epoch * recipe.epochs)
            case "invert":
                search = job.document["search"]
                steps: float = (
                    LOOK * job.document["images"] * search["starts"] * (search["steps"] + 1) / recipe.batch_size
                )
                return steps
            case "match":
                return matched(job) / recipe.batch_size
            case _:
                models = 2 * (len(job.document["watched"]) + len(job.document["defended"]))
                return float(models * epoch * ("white_box" in audit.attacks))


def looked(job: Job) -> float:
    """Return how much of a look in one mode a job of stage look is worth."""
    match job.document["kind"]:
        case "rows":  # a share of the pairs; the passes through the model are hardly shared
            low, high = job.document["settings"]["rows"]
            count = job.document["count"]
            return float((high - low) * (2 * count - low - high) / count**2)
        case "joined":
            return float(sum(not needs_gram((mode,)) for mode in job.document["modes"]))
    return float(max(1, len(job.document["modes"])))


def matched(job: Job) -> float:
    """Return how many points' training steps the searches of a job of stage match are worth.

    Two targets, own gradients and controls, each evaluation a gradient of a gradient of every point.
    """
    document = job.document
    search, searched = document["search"], [name for name in document["methods"] if name != ANALYTIC]
    evaluations = len(searched) * len(document["batches"]) * search["starts"] * (search["steps"] + 1)
    return float(TWICE * 2 * 2 * document["points"] * evaluations)


def queries(settings: Sequence[tuple[GnqPlan, Sequence[Job]]]) -> Iterator[Queries]:
    """Yield, per attack, how often targets are asked in all ``settings``: once a point of their pool under each arm."""
    total: dict[str, int] = {}
    most: dict[str, int] = {}
    for given, _ in settings:
        asked = 2 * given.split.train_size * len(given.arms)
        for attack in given.audit.attacks:
            total[attack] = total.get(attack, 0) + 2 * given.split.pools * asked
            most[attack] = max(most.get(attack, 0), asked)
    for attack, count in total.items():
        yield Queries(attack, POOL_ATTACKS[attack].access, most[attack], count)

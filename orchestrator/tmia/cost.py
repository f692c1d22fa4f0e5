"""The cost of a TMIA plan before it runs: training steps, forward passes, label queries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from audits.queries import hop_skip_jump as search
from audits.tmia.attacks import ATTACKS
from orchestrator.engine.cost.timing import FORWARD, TrainingProbe
from orchestrator.engine.jobs.job import Job, of_stage
from orchestrator.engine.queries import Queries
from orchestrator.tmia.design import TEST_POINTS

if TYPE_CHECKING:
    from audits.training.recipe import Recipe
    from orchestrator.engine.plan.sections import Model
    from orchestrator.tmia.plan import TmiaPlan


class TmiaProbe(TrainingProbe):
    """Seconds per unit of a TMIA plan, guessed from a few training steps."""

    makes_models = ("train",)

    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return architecture and recipe of the models that a job makes or asks."""
        other = self.plan.transfer.recipe
        return self.plan.model, other if other is not None and job.member.startswith("other-") else self.plan.recipe

    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps of the recipe's batch size."""
        audit, split, batch = self.plan.audit, self.plan.split, recipe.batch_size
        points = split.candidates + audit.reference_samples
        match job.stage:
            case "given":  # a pass over a sample of members and of others
                return FORWARD * 2 * TEST_POINTS / batch
            case "train":
                return recipe.epochs * math.ceil(int(job.document["count"]) / batch)
            case "query":
                fitted = audit.reconstruction.points
                pairs = fitted * queries_of(self.plan)["pairs"]
                each = {"posteriors": points, "fit_points": fitted, "pairs": pairs}
                asked = each.get(job.kind) or int(job.document["count"]) * queries_of(self.plan)[job.kind]
                return FORWARD * len(job.document["models"]) * asked / batch
            case "look":  # a pass with gradients at each point, and one without at the points of the proxy
                asked = int(job.document["count"]) + FORWARD * audit.reference_samples / 2
                return float(len(job.document["models"]) * asked / batch)
            case _:
                return float(FORWARD * split.reference_models * points / batch)


def queries_of(plan: Any) -> Mapping[str, int]:
    """Return the labels that each kind of question costs, per point and model."""
    schedule = {"rank": search.RANK, "plain": search.PLAIN, "absolute": search.ABSOLUTE}
    own = int(plan.audit.y_star == "own" or plan.audit.mode == "II")
    return {
        "distances": schedule[plan.audit.hop_skip_jump.schedule].queries,
        "pairs": schedule[plan.audit.hop_skip_jump.schedule].queries,
        "votes": plan.audit.noise.copies + own,
        "posteriors": 1,
    }


def points_of(plan: Any, job: Job) -> int:
    """Return at how many points a job asks each of its models."""
    if job.kind == "pairs":
        return int(plan.audit.reconstruction.points)
    return int(job.document.get("count", plan.split.candidates))


def units_of_targets(plan: TmiaPlan) -> float:
    """Return how many units hold targets: with a given model the first, behind which its controls stand."""
    return math.inf if plan.target is None else 1


def label_queries(settings: Sequence[tuple[TmiaPlan, Sequence[Job]]]) -> Iterator[Queries]:
    """Yield, per attack, the queries of all ``settings`` to targets; answers that several of them read count once."""
    kinds = {"distance": "distances", "votes": "votes", "posterior": "posteriors"}
    asked: dict[str, dict[str, tuple[int, int]]] = {}  # attack → key of a job → its models, queries
    for plan, jobs in settings:
        each = queries_of(plan)
        for attack in plan.audit.attacks:
            found = asked.setdefault(attack, {})
            read = {kinds[name] for name in ATTACKS[attack].reads if name in kinds}
            if ATTACKS[attack].reconstructs:
                read.add("pairs")  # asked of targets where the map is fitted to their own (pairs: paper)
            if ATTACKS[attack].access == "white_box":  # reads the weights and asks nothing
                continue
            if not read:  # the label at each point of the pool, which every kind of question asks anyhow
                for job in of_stage(jobs, "score"):
                    found[job.key] = (plan.asked_targets, plan.asked_targets * plan.audit.asked)
            for job in of_stage(jobs, "query"):
                if job.label == "target" and job.kind in read and job.unit < units_of_targets(plan):
                    models = len(job.document["models"])
                    found[job.key] = (models, models * points_of(plan, job) * each[job.kind])
    for attack, questions in asked.items():
        total = Counter({key: queries for key, (_, queries) in questions.items()}).total()
        targets = max((plan.asked_targets for plan, _ in settings), default=1)
        yield Queries(attack, ATTACKS[attack].access, total // targets, total)

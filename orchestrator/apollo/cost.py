"""The cost of an Apollo plan before it runs: training steps, walks, label queries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, SearchSettings
from audits.training.recipe import Recipe
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.cost.timing import LOOK, TrainingProbe
from orchestrator.engine.jobs.job import Job, of_stage
from orchestrator.engine.plan.sections import Model
from orchestrator.engine.queries import Queries


def label_queries(settings: Iterable[tuple[ApolloPlan, Sequence[Job]]]) -> Iterator[Queries]:
    """Yield, per attack, the queries of all ``settings``; evidence that several of them read is gathered once."""
    asked: dict[str, dict[str, tuple[tuple[str, ...], int]]] = {}  # attack → key of a search → its targets, queries
    for plan, jobs in settings:
        each = {job.kind: queries_per_candidate(plan, job.kind) for job in of_stage(jobs, "search")}
        for attack in plan.audit.attacks:
            found = asked.setdefault(attack, {})
            for job in of_stage(jobs, "search"):
                if job.kind in ATTACKS[attack].reads:
                    found[job.key] = (tuple(job.document["targets"]), job.document["count"] * each[job.kind])
    for attack, searches in asked.items():
        total: Counter[tuple[str, ...]] = Counter()
        for targets, queries in searches.values():
            total[targets] += queries
        if total:
            per_target = max(queries // len(targets) for targets, queries in total.items())
            yield Queries(attack, ATTACKS[attack].access, per_target, total.total())


def queries_per_candidate(plan: ApolloPlan, kind: str) -> int:
    """Return the queries about one candidate that gathering a kind of evidence puts to a target."""
    if "population" in KINDS[kind].settings:  # the same for all candidates of a target, so split between them
        candidates, there = plan.split.candidates, plan.split.test_pool - plan.nulls
        sharing = candidates.forget + candidates.unseen + candidates.retained
        return -(-min(plan.audit.population, there) // sharing)
    settings = SearchSettings(**plan.audit.search.model_dump(exclude={"shadows"}))
    return int(KINDS[kind].queries(settings, plan.audit.query_budget))


class ApolloProbe(TrainingProbe):
    """Seconds per unit of an Apollo plan, guessed from a few training steps."""

    makes_models = ("train", "unlearn", "own_start")

    def fitting(self, job: Job) -> tuple[Model, Recipe]:
        """Return architecture and recipe of the models that a job makes, or mostly reads: targets' or shadows'."""
        plan = self.plan
        shadows = plan.shadow_model or plan.model, plan.shadow_recipe or plan.recipe
        if job.stage in ("train", "unlearn"):
            ours = all(job.document[name] == self.resolved[name] for name in ("model", "recipe"))
        else:
            ours = job.stage not in ("trace", "search", "rehearse")
        return (plan.model, plan.recipe) if ours else shadows

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The plan as plain values."""
        found: dict[str, Any] = self.plan.resolved()
        return found

    def steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a job in training steps of the recipe's batch size."""
        split, batch = self.plan.split, recipe.batch_size
        size = job.document["count"] if job.stage in ("train", "own_start") else split.train_size
        training = float(recipe.epochs * math.ceil(size / batch))
        match job.stage:
            case "train" | "own_start":
                return training
            case "unlearn" if job.document["method"] == "retrain":
                return training
            case "unlearn":  # an epoch counts as one over the retain set: an upper end
                settings = job.document["settings"]
                size = number(settings, "batch_size", batch) or batch
                epochs = number(settings, "epochs", 0) * math.ceil(split.train_size / size)
                return float(epochs + number(settings, "iterations", 0))
            case "trace" | "search" | "rehearse":  # shadows read × candidates of a shard × two directions × T steps
                shadows = sum(len(group) for role in job.document["original"].values() for group in role)
                steps = self.plan.audit.search.steps if "search" in job.document else 1
                return float(shadows * 2 * int(job.document["count"]) * steps / batch)
            case "expose" | "disclosure":
                watched = job.document["settings"]
                looks = LOOK * (watched["looks"] + 1) * math.ceil(split.train_size / batch)
                return float(watched.get("models", 1) * (training + looks))
            case _:
                return float(math.ceil((split.train_size + split.test_pool) / batch))


def number(settings: Mapping[str, Any], name: str, default: float) -> float:
    """Return a setting that is a number, else ``default``: a user's own method may call anything by this name."""
    value = settings.get(name, default)
    return abs(value) if isinstance(value, int | float) else default

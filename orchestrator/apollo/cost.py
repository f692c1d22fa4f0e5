"""The cost of an Apollo plan before it runs: training steps, walks, label queries."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, SearchSettings
from audits.apollo.evidence.population import Population
from audits.training.recipe import Recipe
from audits.unlearning import UNLEARNERS
from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.cost.timing import FORWARD, LOOK, TrainingProbe
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
    if KINDS[kind].part is Population:  # the same for all candidates of a target, so split between them
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
            case "unlearn":
                return self.unlearning_steps(job, recipe)
            case "trace" | "search" | "rehearse":
                return self.walks(job) + self.answers(job) / batch
            case "utility":  # the training points of one model, the test points of two
                return float(FORWARD * (split.train_size + 2 * split.test_pool) / batch)
            case "score" | "appraise":  # arithmetic
                return 0.0
            case "expose" | "disclosure":
                watched = job.document["settings"]
                looks = LOOK * (watched["looks"] + 1) * math.ceil(split.train_size / batch)
                return float(watched.get("models", 1) * (training + looks))
            case _:
                return float(math.ceil((split.train_size + split.test_pool) / batch))

    def unlearning_steps(self, job: Job, recipe: Recipe) -> float:
        """Return the work of a method in steps of the recipe's batch size; its own batches may be smaller or larger.

        An epoch counts as one over the whole training set, an upper end, or over the forget set if it reads no other.
        """
        settings, method = job.document["settings"], job.document["method"]
        size = round(number(settings, "batch_size", recipe.batch_size)) or recipe.batch_size
        steps = number(settings, "epochs", 0) * math.ceil(self.walked(method) / size)
        steps += number(settings, "iterations", 0)
        if size == recipe.batch_size or not steps:
            return float(steps)
        model, _ = self.fitting(job)
        own = dataclasses.replace(recipe, batch_size=size)
        return float(steps * self.measure(model, own)[0] / self.measure(model, recipe)[0])

    def walked(self, method: str) -> int:
        """Return the points that an epoch of a method has."""
        split, share = self.plan.split, self.plan.split.forget_share
        only_forget = method in UNLEARNERS and not UNLEARNERS[method].reads_retain
        if only_forget and share is not None and self.plan.target is None:
            return max(1, round(float(share * split.train_size)))
        return int(split.train_size)

    def walks(self, job: Job) -> float:
        """Return the work of a search in training steps: its shadows take T steps in two directions.

        Shadows are asked about a few candidates at a time, half of them before and half after unlearning; such a step
        of a small model costs more than its share of a whole one.
        """
        if "search" not in job.document or (job.stage == "search" and KINDS[job.kind].traced):
            return 0.0
        model, recipe = self.fitting(job)
        count = int(job.document["count"])
        few = dataclasses.replace(recipe, batch_size=max(2, min(count, self.plan.compute.chunk)))
        steps: int = self.plan.audit.search.steps
        passes = 2 * shadows_read(job) * steps * math.ceil(count / few.batch_size)
        return passes * self.measure(model, few)[0] / self.measure(model, recipe)[0]

    def answers(self, job: Job) -> float:
        """Return at how many points, each worth a training step on one, a search asks shadows and targets."""
        if job.stage == "trace":
            return 0.0
        steps = 2 * self.plan.audit.search.steps if "search" in job.document else 1
        return FORWARD * (shadows_read(job) + 2) * steps * int(job.document["count"])

    def images(self, job: Job, recipe: Recipe) -> float:
        """Return how many images a job decodes: those that a model trains on or is judged by, or candidates."""
        split = self.plan.split
        match job.stage:
            case "unlearn":
                epochs = dataclasses.replace(
                    recipe, epochs=round(number(job.document["settings"], "epochs", recipe.epochs))
                )
                return float(split.train_size * self.readings(epochs))
            case "utility":
                return float(split.train_size + split.test_pool)
            case "trace" | "search" | "rehearse":
                return float(job.document["count"])
        return super().images(job, recipe)


def shadows_read(job: Job) -> int:
    """Return how many shadows a search reads."""
    return sum(len(group) for role in job.document["original"].values() for group in role)


def number(settings: Mapping[str, Any], name: str, default: float) -> float:
    """Return a setting that is a number, else ``default``: a user's own method may call anything by this name."""
    value = settings.get(name, default)
    return abs(value) if isinstance(value, int | float) else default

"""A toy plan laid out on its data: its pool, the half of each model, and its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property

import numpy as np
from torch import nn

from audits.arrays import Bools, Ids
from audits.seeds import derive_seed, numpy_generator
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.jobs.keys import digest
from orchestrator.engine.keyed_jobs import OneArchitecture
from tests.orchestrator.toy.plan import ToyPlan


class ToyJobs(OneArchitecture):
    """Lists the jobs of one toy plan: a model is trained, then its points are scored."""

    plan: ToyPlan
    warnings: tuple[str, ...] = ()

    @cached_property
    def pool(self) -> Ids:
        """The points (2n,) that models train on or not."""
        order: Ids = numpy_generator(derive_seed(self.plan.seed, "pool")).permutation(len(self.data.labels))
        return order[: 2 * self.plan.split.train_size]

    def half(self, target: int) -> Bools:
        """Return which points of the pool (2n,) a target trains on."""
        order = numpy_generator(derive_seed(self.plan.seed, "half", target)).permutation(len(self.pool))
        return np.asarray(order < self.plan.split.train_size)

    def build(self, seed: int) -> nn.Module:
        """Return a model with first weights drawn by ``seed``."""
        return self.plan.model.architecture().build(self.data.shape, len(self.data.classes), seed)

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan."""
        targets = range(self.plan.split.targets)
        return [*map(self.train_job, targets), *map(self.score_job, targets)]

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``."""
        return self.train_job(job.unit) if job.stage == "train" else self.score_job(job.unit)

    def train_job(self, target: int) -> Job:
        """Return the job that trains one target."""
        document = {
            "data": self.data.fingerprint,
            "points": digest(self.pool[self.half(target)]),
            "count": self.plan.split.train_size,
            "model": self.plan.model.model_dump(mode="json"),
            "recipe": asdict(self.plan.recipe),
            "seed": self.plan.seed,
            "unit": target,
        }
        return self.job("train", document, (), self.architecture, unit=target)

    def score_job(self, target: int) -> Job:
        """Return the job in which the plan's attacks score the pool by one target."""
        trained = self.train_job(target).key
        document = {"trained": trained, "pool": digest(self.pool), "attacks": list(self.plan.audit.attacks)}
        return self.job("score", document, (trained,), self.architecture, (), unit=target)

    def trained(self, target: int) -> Reference:
        """Return where a target stands in the store."""
        return Reference("train", self.train_job(target).key)

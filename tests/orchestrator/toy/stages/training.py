"""Stage train: one target on its half of the pool."""

from __future__ import annotations

from audits.training.fit import train_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import trained_files
from orchestrator.engine.run.worker import WorkerContext
from tests.orchestrator.toy.design import ToyJobs


def train(context: WorkerContext[ToyJobs], job: Job) -> dict[str, bytes]:
    """Train one target and measure how well it fits."""
    design, recipe = context.design, context.design.plan.recipe
    points, seed = context.tensors(design.pool[design.half(job.unit)]), context.seed("fit", job.unit)
    return trained_files(f"target {job.unit}", lambda: train_model(design.build, points, recipe, seed), points, recipe)

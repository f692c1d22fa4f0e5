"""Stage train: one model on its half of a pool."""

from __future__ import annotations

from audits.training.fit import train_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import trained_files
from orchestrator.mia.stages.context import Context
from orchestrator.mia.stages.points import outside_points, own_points


def train(context: Context, job: Job) -> dict[str, bytes]:
    """Train one model and measure how well it fits its half, canaries included, and points outside of all pools."""
    design = context.design
    model = design.models[job.member]
    recipe, points = design.recipe_of(model), own_points(context, model)
    return trained_files(
        model.name,
        lambda: train_model(
            lambda seed: design.build(model, seed), points, recipe, model.seed, context.keeper, context.team
        ),
        points,
        recipe,
        outside_points(context),
    )

"""Stage train: one model of the partition or of the ranking population."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.seeds import Purpose
from audits.training.fit import train_model
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import builder_of
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import trained_files

if TYPE_CHECKING:
    from torch import nn


def train(context: Context, job: Job) -> dict[str, bytes]:
    """Train one model and measure how well it fits."""
    member = context.design.member(job.member)
    points, recipe = context.tensors(member.train), context.design.recipe_of(member)
    build, seed = builder_of(context, member), context.seed(Purpose.TRAIN, member.name)

    def fitted() -> nn.Module:
        return train_model(build, points, recipe, seed, context.keeper, context.team)

    return trained_files(member.name, fitted, points, recipe)

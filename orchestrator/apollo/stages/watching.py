"""Watched trainings: a model of the partition trained as stage train does, and what was seen of its points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.seeds import Purpose
from audits.uniqueness.accumulate import Trace
from audits.uniqueness.watching import train_watched
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import builder_of
from orchestrator.engine.run.models import divergence_named

if TYPE_CHECKING:
    from torch import nn

    from audits.apollo.design.partition import Member
    from audits.training.keeper import Keeper


def watch(context: Context, member: Member, keeper: Keeper) -> tuple[nn.Module, Trace]:
    """Train ``member`` as stage train does, to the same bits; return the model and what was seen of its points."""
    recipe, chunk = context.design.recipe_of(member), context.plan.compute.chunk
    seed = context.seed(Purpose.TRAIN, member.name)
    with divergence_named(member.name):
        build, points = builder_of(context, member), context.tensors(member.train)
        return train_watched(build, points, recipe, seed, chunk, keeper)

"""Stage own_start: a target trained again without its forget set, from its own start.

The reference of Δ_r in the stage radii. The control ``retrain`` starts from other weights, so that its distance to the
target is mostly that of two unrelated trainings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.seeds import Purpose
from audits.training.fit import train_model
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import builder_of
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import WEIGHTS
from orchestrator.engine.store.payloads import pack_weights

if TYPE_CHECKING:
    pass


def own_start(context: Context, job: Job) -> dict[str, bytes]:
    """Train one target again by its own seed (initial weights, order, dropout) on its retain set alone."""
    member = context.design.member(job.member)
    points, recipe = context.tensors(member.retain), context.design.recipe_of(member)
    seed = context.seed(Purpose.TRAIN, member.name)
    build = builder_of(context, member)
    model = train_model(build, points, recipe, seed, context.keeper, context.team)
    return {WEIGHTS: pack_weights(model)}

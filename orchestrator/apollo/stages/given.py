"""Stage given: the target, its original and its lists of points, as the store keeps them for workers."""

from __future__ import annotations

from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import builder_of
from orchestrator.engine.given import POINTS
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.given import model_given, points_files


def given(context: Context, job: Job) -> dict[str, bytes]:
    """Keep one given model, and how well it fits its retained and its test points; or the lists of points."""
    design = context.design
    if job.member == POINTS:
        return points_files(design.read_points())
    (member,) = design.targets
    retained, test = context.tensors(member.retain), context.tensors(design.partition.test)
    return model_given(context, job, lambda: builder_of(context, member)(0), retained, test)

"""Stage given: a target and its lists of points, as the store keeps them for workers that need not see the files."""

from __future__ import annotations

import numpy as np

from orchestrator.engine.given import POINTS
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.given import model_given, points_files
from orchestrator.mia.design import GIVEN
from orchestrator.mia.stages.context import Context
from orchestrator.mia.stages.points import outside_points, pool_points


def bring(context: Context, job: Job) -> dict[str, bytes]:
    """Keep the lists of points, or the model and how well it fits its members in the pool, and test points."""
    design = context.design
    if job.member == POINTS:
        return points_files(design.known_points)
    model = design.models[GIVEN]
    members = pool_points(context, 0, np.flatnonzero(model.half))
    return model_given(context, job, lambda: design.build(model, 0), members, outside_points(context))

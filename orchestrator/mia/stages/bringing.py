"""Stage given: a target's weights and lists of points, as the store keeps them for workers that need not see files."""

from __future__ import annotations

import numpy as np

from orchestrator.engine.given import POINTS
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.given import given_files, points_files
from orchestrator.mia.design import GIVEN
from orchestrator.mia.stages.context import Context
from orchestrator.mia.stages.points import outside_points, pool_points


def bring(context: Context, job: Job) -> dict[str, bytes]:
    """Keep the lists of points, or the weights and how well they fit members of the pool, and test points."""
    design = context.design
    if job.member == POINTS:
        return points_files(design.known_points)
    model = design.models[GIVEN]
    return given_files(
        design.plan.target.weights,  # type: ignore[union-attr]  # a plan that is given a model says which
        lambda: design.build(model, 0),
        pool_points(context, 0, np.flatnonzero(model.half)),
        outside_points(context),
        design.device,
    )

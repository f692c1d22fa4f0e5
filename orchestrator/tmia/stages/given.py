"""Stage given: the model that a plan is given, and the points that it was trained on, as the store keeps them."""

from __future__ import annotations

from orchestrator.engine.given import POINTS
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.given import model_given, points_files
from orchestrator.tmia.design import fit_sample
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.stored import tensors


def bring(context: Context, job: Job) -> dict[str, bytes]:
    """Keep the given lists of points, or the given model with its accuracy on samples of members and others.

    In mode II, whose students have classes of their own, which of the other side's points it was trained on is not
    known: both accuracies are then those on a sample of that side.
    """
    design = context.design
    if job.member == POINTS:
        return points_files(design.read_points())
    side = design.asked_side
    inside, outside = (
        [design.points(side)] * 2 if side == "other" else [design.known("members"), design.known("non_members")]
    )
    return model_given(
        context,
        job,
        lambda: design.build(side, len(design.classes(side)), 0),
        tensors(context, side, fit_sample(inside)),
        tensors(context, side, fit_sample(outside)),
    )

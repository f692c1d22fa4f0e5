"""The models that a TMIA audit judges: the targets that are asked, which are students where there is a transfer."""

from __future__ import annotations

from functools import partial

from orchestrator.engine.jobs.job import Reference
from orchestrator.engine.published import Published
from orchestrator.tmia.design import GIVEN
from orchestrator.tmia.jobs import TmiaJobs


def published(design: TmiaJobs) -> list[Published]:
    """Return the targets that are asked; where the plan is given one, it comes first."""
    side = design.asked_side
    data, classes = design.data_of_side(side), design.classes(side)
    found = []
    for number, model in enumerate(design.models_of("target")):
        job = design.train_job(model)
        made = "student" if design.student(model) else "target"
        found.append(
            Published(
                "given" if model.name == GIVEN else f"{made}-{number}",
                number,
                job.stage,
                Reference(job.stage, job.key),
                design.plan.model,
                data,
                tuple(data.classes[index] for index in classes),
                partial(design.build, side, len(classes), 0),
                scaled=design.plan.transfer.teacher_input == "imagenet",
            )
        )
    return found

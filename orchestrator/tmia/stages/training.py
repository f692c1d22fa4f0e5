"""Stage train: one model of either side of the transfer, from its teacher if it has one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from audits.seeds import Purpose
from audits.training.fit import train_model
from audits.training.transfer import teacher_from, train_student
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import trained_files
from orchestrator.tmia.design import Fitted
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.stored import stored, tensors

if TYPE_CHECKING:
    from torch import nn


def train(context: Context, job: Job) -> dict[str, bytes]:
    """Train one model, from its teacher if it has one, and measure how well it fits."""
    design = context.design
    model = design.models[job.member]
    points, recipe = tensors(context, model.side, model.train), design.recipe_of(model)
    seed, classes = context.seed(Purpose.FIT, model.name), len(design.classes(model.side))
    keeper, team = context.keeper, context.team

    def fitted() -> nn.Module:
        if not design.student(model):
            return train_model(lambda own: design.build(model.side, classes, own), points, recipe, seed, keeper, team)
        return train_student(
            teacher_of(context, model), lambda count, own: design.build(model.side, count, own), classes,
            design.plan.transfer.n_frozen, points, recipe, seed, keeper=keeper, team=team,
        )  # fmt: skip

    test = tensors(context, model.side, model.test) if len(model.test) else None
    return trained_files(model.name, fitted, points, recipe, test)


def teacher_of(context: Context, model: Fitted) -> nn.Module:
    """Return the teacher of a student: a model of the plan, or that of the plan's file."""
    design = context.design
    if model.teacher:
        return stored(context, design.models[model.teacher])
    file = design.plan.transfer.teacher
    assert file is not None, "a student without a teacher of the plan has one in a file"
    return teacher_from(Path(file), lambda classes, seed: design.build(model.side, classes, seed)).to(design.device)

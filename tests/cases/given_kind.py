"""A kind of audit of given models, as small as an honest one can be; one line of a test registers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from audits.models import MODELS
from audits.signals.loss import minus_loss
from audits.training.loop import logits
from orchestrator.engine.given import GivenJobs
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.keyed_jobs import OneArchitecture
from orchestrator.engine.kind import Stage
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.components import completed
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.engine.plan.fits import build_without_numbers, facts_of
from orchestrator.engine.plan.target import Target, unreadable
from orchestrator.engine.run.given import check_target, model_given, points_files
from orchestrator.engine.run.scores import SCORES
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import pack_table
from tests.orchestrator.toy.kind import KIND as TOY
from tests.orchestrator.toy.plan import ToyPlan

NEEDS = {"loss": "posteriors", "right": "labels"}


class GivenPlan(ToyPlan):
    """A toy plan with a target; ``right`` asks about noisy inputs too, as an adaptive attack does."""

    target: Target


class Jobs(GivenJobs, OneArchitecture):
    """Brings the model and the points in, and scores them in one job an attack."""

    plan: GivenPlan
    warnings: tuple[str, ...] = ()
    recipes = ()

    @property
    def given_code(self) -> tuple[type, ...]:
        """The class of the plan's architecture."""
        return self.architecture

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan."""
        return [*self.given_jobs(), *(self.score_job(attack) for attack in self.plan.audit.attacks)]

    def asked_points(self) -> Any:
        """Return all points that are given."""
        return np.sort(np.concatenate([*self.given_points.values()]))

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``."""
        return self.given_job(job.member) if job.stage == "given" else self.score_job(job.label)

    def score_job(self, attack: str) -> Job:
        """Return the job of one attack."""
        needs = tuple(job.key for job in self.given_jobs())
        return self.job("score", {"needs": list(needs), "attack": attack}, needs, self.architecture, label=attack)

    def build(self) -> nn.Module:
        """Return a model of the plan's architecture."""
        return self.plan.model.architecture().build(self.data.shape, len(self.data.classes), 0)


def bring(context: WorkerContext[Jobs], job: Job) -> dict[str, bytes]:
    """Bring in the model, or the points."""
    design = context.design
    if job.member == "points":
        return points_files(design.given_points)
    points = design.given_points
    members, others = (context.tensors(points[name]) for name in ("members", "non_members"))
    return model_given(context, job, design.build, members, others)


def score(context: WorkerContext[Jobs], job: Job) -> dict[str, bytes]:
    """Score members and others by the target: minus the loss, or how often the class is told right under noise."""
    design, attack = context.design, job.label
    sides = design.given_points
    ids = np.concatenate([sides["members"], sides["non_members"]])
    x, y = context.tensors(ids).all()
    model = context.stored(design.given_model(), design.build)
    if attack == "loss":
        found = minus_loss(logits(model, x).float().cpu().numpy()[None], y.cpu().numpy())[0]
    else:
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) / 8
        each = [(logits(model, some).argmax(1) == y).double().numpy() for some in (x, x + noise)]
        found = np.mean(each, axis=0)
    member = np.isin(ids, sides["members"])
    columns = {"attack": [attack] * len(ids), "target": np.zeros(len(ids), np.int64), "point_id": ids}
    return {SCORES: pack_table(pa.table({**columns, "member": member, "score": found}))}


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> GivenPlan:
    """Return the checked plan of a plain mapping."""
    plan = validated(GivenPlan, raw)
    settings, problems = completed(MODELS, plan.model.name, plan.model.settings, "model.name", "model.settings")
    problems += unreadable({name: NEEDS[name] for name in plan.audit.attacks}, plan.target, ("right",))
    if problems:
        raise PlanProblems(problems)
    whole = plan.model_copy(update={"model": plan.model.model_copy(update={"settings": settings})})
    return whole.made_by(Rules(checked, lambda plan: ()), notes)


def check_data(plan: GivenPlan, absent: bool) -> None:
    """Refuse a plan whose target does not fit."""
    facts = facts_of(plan.data, absent)
    classes = len(facts.classes)
    check_target(plan, lambda: build_without_numbers(plan.model, facts.shape, classes), classes)


KIND = replace(
    TOY,
    place="tests.cases.given_kind:KIND",
    check=checked,
    fits=check_data,
    design=Jobs,
    stages=(Stage("given", bring, "given"), Stage("score", score, "scores")),
)

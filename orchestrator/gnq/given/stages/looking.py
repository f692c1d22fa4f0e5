"""Stage look: a group of points as the given model sees them at one of its checkpoints."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from audits.arrays import Ids
from audits.gradients.validate import made_auditable
from audits.memory import with_less
from audits.targets.weights import with_weights
from audits.training.loop import logits
from audits.uniqueness.scores import point_scores
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import pack_arrays, pack_json, unpack_arrays, unpack_weights
from orchestrator.gnq.given.design import GivenDesign, Group
from orchestrator.gnq.given.stages.given import CHECKPOINT, MEMBERS

SEEN = "seen.safetensors"
MODE = "gnq."


def look(context: WorkerContext[GivenDesign], job: Job) -> dict[str, bytes]:
    """Score the points of a group among each other at one checkpoint of the given model."""
    design = context.design
    given = context.store.get("given", job.needs[0])
    weights = unpack_weights(given.read(CHECKPOINT.format(job.unit)))
    model = made_auditable(with_weights(design.build(), weights).to(design.device))
    points = context.tensors(design.scored(members_of(context, job), cast(Group, job.kind)))
    audit = design.plan.audit
    scores = with_less(
        lambda size: point_scores(model, points, audit.modes, audit.ridge, chunk=size), design.plan.compute.chunk
    )
    with torch.no_grad():
        right = logits(model, points.x).argmax(1) == points.y
    arrays: dict[str, NDArray[Any]] = {
        "loss": scores.loss,
        "squared_norm": scores.squared_norm,
        "correct": right.cpu().numpy(),
        **{f"{MODE}{mode}": values for mode, values in scores.gnq.items()},
    }
    length = float(torch.stack([parameter.detach().double().norm() for parameter in model.parameters()]).norm())
    return {SEEN: pack_arrays(arrays), METRICS: pack_json({"doubt": scores.doubt, "weight_norm": length})}


def members_of(context: WorkerContext[GivenDesign], job: Job) -> Ids:
    """Return the ids of the points that the given model was trained on."""
    found: Ids = unpack_arrays(context.store.get("given", job.needs[0]).read(MEMBERS))["ids"].astype(np.int64)
    return found

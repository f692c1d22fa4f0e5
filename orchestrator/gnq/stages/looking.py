"""Stage look: the points of a model as seen at one of the checkpoints that its training kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.gradients.gram import from_rows, gram_rows
from audits.gradients.validate import made_auditable
from audits.memory import with_less
from audits.uniqueness.accumulate import traced
from audits.uniqueness.scores import point_scores
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.store.payloads import pack_arrays, pack_json, unpack_arrays, unpack_weights
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.stored import TRACE, packed, tensors
from orchestrator.gnq.stages.training import CHECKPOINT

if TYPE_CHECKING:
    import torch
    from torch import nn

    from orchestrator.gnq.design import Watched

ROWS = "rows.safetensors"


def look(context: Context, job: Job) -> dict[str, bytes]:
    """See a model's points at one checkpoint that its training kept, or some rows of their Gram matrix."""
    design = context.design
    model, chunk = design.models[job.member], design.plan.compute.chunk
    points = tensors(context, design.points(model))
    seen = at_checkpoint(context, model, design.looks[job.unit])
    shards = design.shards(model)
    if job.shard >= 0:
        rows = with_less(lambda size: gram_rows(seen, points.x, points.y, *shards[job.shard], chunk=size), chunk)
        return {ROWS: pack_arrays({"K": rows.cpu().numpy()})}
    parts = (rows_of(context, design.row_job(model, job.unit, shard)) for shard in range(len(shards)))
    K = from_rows(parts, len(points)) if shards else None
    modes, ridge = design.modes(model), design.plan.audit.ridge
    scores = with_less(lambda size: point_scores(seen, points, modes, ridge, chunk=size, K=K), chunk)
    trace = traced([design.looks[job.unit]], [scores])
    return {TRACE: pack_arrays(packed(trace)), METRICS: pack_json({"doubts": sum(bool(text) for text in trace.doubts)})}


def at_checkpoint(context: Context, model: Watched, step: int) -> nn.Module:
    """Return a model as it stood after ``step`` steps of its training, ready to be asked for gradients."""
    design = context.design
    found = design.build(0)
    found.load_state_dict(
        unpack_weights(context.store.get("train", design.train_job(model).key).read(CHECKPOINT.format(step)))
    )
    return made_auditable(found.to(design.device))


def rows_of(context: Context, job: Job) -> torch.Tensor:
    """Return the rows of a Gram matrix that a look left."""
    import torch

    return torch.from_numpy(unpack_arrays(context.store.get("look", job.key).read(ROWS))["K"]).to(context.design.device)

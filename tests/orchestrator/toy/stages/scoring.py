"""Stage score: the attacks score every point of the pool by one target."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from audits.signals.loss import minus_loss
from audits.training.loop import logits
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.scores import SCORES
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import pack_table
from tests.orchestrator.toy.design import ToyJobs


def score(context: WorkerContext[ToyJobs], job: Job) -> dict[str, bytes]:
    """Score the pool: minus the loss of each point, or whether its class is told right."""
    design = context.design
    model = context.stored(design.trained(job.unit), lambda: design.build(0))
    x, y = context.tensors(design.pool).all()
    found, labels = logits(model, x).float().cpu().numpy(), y.cpu().numpy()
    ways = {"loss": minus_loss(found[None], labels)[0], "right": (found.argmax(1) == labels).astype(np.float64)}
    parts = [
        pa.table(
            {
                "attack": [attack] * len(labels),
                "target": np.full(len(labels), job.unit),
                "point_id": design.pool,
                "member": design.half(job.unit),
                "score": ways[attack],
            }
        )
        for attack in design.plan.audit.attacks
    ]
    return {SCORES: pack_table(pa.concat_tables(parts))}

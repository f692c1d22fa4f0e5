"""Stage given: the target's files, as the store keeps them for workers that need not see the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import pack_arrays

if TYPE_CHECKING:
    from orchestrator.gnq.given.jobs import GivenJobs

CHECKPOINT = "checkpoint-{}.safetensors"
"""Weights by place: a file each, since a look reads one of them."""
MEMBERS = "members.safetensors"


def bring(context: WorkerContext[GivenJobs], job: Job) -> dict[str, bytes]:
    """Keep the weights of every checkpoint, and the ids of the points that the model was trained on."""
    design = context.design
    files = {
        CHECKPOINT.format(place): pack_arrays({name: tensor.numpy() for name, tensor in each.state.items()})
        for place, each in enumerate(design.checkpoints)
    }
    return {**files, MEMBERS: pack_arrays({"ids": design.members})}

"""Stage given: the target's files, as the store keeps them for workers that need not see the files."""

from __future__ import annotations

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.gnq.given.design import GivenDesign

CHECKPOINT = "checkpoint-{}.safetensors"
"""Weights by place: a file each, since a look reads one of them."""
MEMBERS = "members.safetensors"


def bring(context: WorkerContext[GivenDesign], job: Job) -> dict[str, bytes]:
    """Keep the weights of every checkpoint, and the ids of the points that the model was trained on."""
    design = context.design
    files = {
        CHECKPOINT.format(place): pack_arrays({name: tensor.numpy() for name, tensor in each.state.items()})
        for place, each in enumerate(design.checkpoints)
    }
    return {**files, MEMBERS: pack_arrays({"ids": design.members})}

"""Stage ask: what all models of a pool, and its null models, answer at its points and outside of all pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audits.training.loop import logits
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.mia.stages.context import Context
from orchestrator.mia.stages.points import outside_points, pool_points, stored

if TYPE_CHECKING:
    import torch

    from orchestrator.mia.design import Fitted

ANSWERS = "answers.safetensors"
JUDGED, SHADOWS, STRANGERS = "judged", "shadows", "strangers"
"""Logits at the points of the pool; those outside of all pools stand under ``known.`` and the same name."""


def ask(context: Context, job: Job) -> dict[str, bytes]:
    """Ask the judged models, the shadows and the strangers of a pool once about each point."""
    design = context.design
    here, there = pool_points(context, job.unit).x, outside_points(context).x
    found = {}
    groups = {
        JUDGED: design.models_judged(job.unit),
        SHADOWS: design.of(job.unit, "shadow"),
        STRANGERS: design.strangers(job.unit),
    }
    for name, models in groups.items():
        if models:
            found[name], found[f"known.{name}"] = (answers(context, models, x) for x in (here, there))
    return {ANSWERS: pack_arrays(found)}


def answers(context: Context, models: Sequence[Fitted], x: torch.Tensor) -> NDArray[Any]:
    """Return the logits (models, N, classes) float32 of models at points."""
    return np.stack([logits(stored(context, model), x).float().cpu().numpy() for model in models])

"""Stage look: what the weights of models show of points, for white-box attacks, one model at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from audits.data.tensors import TensorSet
from audits.gradients.validate import made_auditable
from audits.tmia.white_box import displacement, nasr_features
from audits.training.loop import logits
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.tmia.stages.context import Context
from orchestrator.tmia.stages.stars import filled
from orchestrator.tmia.stages.stored import stored, tensors

if TYPE_CHECKING:
    from torch import nn

    from orchestrator.tmia.design import Fitted

LOOKS = "looks.safetensors"


def look(context: Context, job: Job) -> dict[str, bytes]:
    """Look into one unit of models: at the candidates, or reference models at points of the attacker's.

    ``features`` (models, N, F) float32; ``displacement`` (models, N) float64, of y* as the class. A proxy learns points
    of the attacker's that the model did not train on. In mode II, whose students are of other classes, there is none,
    and displacements are 0. One model and one copy of it are held: 4·N·F·models bytes for the answers.
    """
    design = context.design
    group: Any = job.label
    ids = design.looked_at if group == "reference" else design.sets.candidates
    features, displaced = [], []
    for model in design.looked_models(group, job.unit):
        net = made_auditable(stored(context, model))
        points = starred(context, net, ids)
        features.append(nasr_features(net, points, chunk=design.plan.compute.chunk))
        displaced.append(np.zeros(len(ids)) if design.asked_side == "other" else moved(context, model, net, points))
    return {LOOKS: pack_arrays({"features": np.stack(features), "displacement": np.stack(displaced)})}


def moved(context: Context, model: Fitted, net: nn.Module, points: TensorSet) -> Any:
    """Return the displacement (N,) of a model's head at ``points``."""
    design = context.design
    outside = design.proxy_points[~np.isin(design.proxy_points, model.train)]
    return displacement(net, points, tensors(context, "own", outside), chunk=design.plan.compute.chunk)


def starred(context: Context, net: nn.Module, ids: Any) -> TensorSet:
    """Return the points ``ids`` with y* as their class."""
    x, _ = tensors(context, "own", ids).all()
    own = logits(net, x).argmax(1)
    star = filled(context.design.true_star(ids), own.cpu().numpy())
    return TensorSet(x, torch.from_numpy(star).to(own))

"""Stage walk: distances of points to the boundaries of a pool's judged models, from labels alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from audits.queries import hop_skip_jump as search
from audits.queries.oracles import label_oracle
from audits.queries.start_points import starts_from_pool
from audits.queries.together import together
from audits.seeds import Purpose
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.mia.stages.context import Context
from orchestrator.mia.stages.points import outside_points, pool_points, stored

if TYPE_CHECKING:
    import torch
    from torch import nn

DISTANCES = "distances.safetensors"
SCHEDULES = {"rank": search.RANK, "plain": search.PLAIN, "absolute": search.ABSOLUTE}
AWAY = 1 << 40
"""Added to the ids of known non-members: their random draws are not those of a pool's points."""


def walk(context: Context, job: Job) -> dict[str, bytes]:
    """Search from some points of the pool, and from as many known non-members, to the boundary of each judged model.

    Walks begin at test points that are not themselves asked about, the same for all models.
    """
    design = context.design
    schedule = SCHEDULES[design.plan.audit.hop_skip_jump.schedule]
    known = design.known_asked(job.unit)
    rest = np.setdiff1d(np.arange(len(design.drawn.test)), known)
    pool, pool_labels = outside_points(context, rest if len(rest) else known).all()
    sides = {
        "distance": (
            pool_points(context, job.unit, design.boundary_points(job.unit)),
            design.boundary_points(job.unit),
        ),
        "known": (outside_points(context, known), known + AWAY),
    }
    models = [stored(context, model) for model in design.models_judged(job.unit)]
    at_once = together(models, design.data.shape, pool.flatten(1))
    asked = at_once or [Asked(model, design.data.shape) for model in models]
    found: dict[str, Any] = {"queries": np.array(schedule.queries, np.int64)}
    for name, (points, ids) in sides.items():
        x, y = points.all()
        flat = x.flatten(1)
        starts = starts_from_pool(flat, y.cpu(), pool.flatten(1), pool_labels.cpu(), schedule.starts)
        found[name] = (
            search.distances_of_models(
                asked, flat, y, ids, starts, schedule, context.seed(Purpose.HOP_SKIP_JUMP, str(job.unit)),
                design.data.value_range,
            )
            .cpu()
            .numpy()
        )  # fmt: skip
    return {DISTANCES: pack_arrays(found)}


class Asked:
    """Labels of one model, asked with flat points through an oracle that shows nothing else."""

    def __init__(self, model: nn.Module, shape: tuple[int, ...]) -> None:
        self.oracle, self.shape = label_oracle(model), shape

    def __call__(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the labels (N,) of points (N, D)."""
        said: torch.Tensor = self.oracle.ask(flat.reshape(-1, 1, *self.shape), np.arange(len(flat)))
        return said[:, 0]

"""Stage rank: how much each point is memorised, by which the audited points may be chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.apollo.design.memorisation import memorisation
from audits.training.loop import logits
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import stored_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays

if TYPE_CHECKING:
    pass

RANKING = "ranking.safetensors"


def rank(context: Context, job: Job) -> dict[str, bytes]:
    """Measure how much each point of the ranked pool is memorised by the ranking population."""
    import numpy as np

    ids, members = context.design.ranked_points(), list(context.design.ranking_members.values())
    points = context.tensors(ids)
    inside = np.stack([np.isin(ids, member.train) for member in members])
    rows = []
    for member in members:
        found = logits(stored_model(context, context.design.trained(member), member), points.x).double().softmax(1)
        rows.append(found.gather(1, points.y[:, None]).squeeze(1).cpu().numpy())
    return {RANKING: pack_arrays({"memorisation": memorisation(np.stack(rows), inside)})}

"""Stage rank: how much each point is memorised, by which the audited points may be chosen."""

from __future__ import annotations

from orchestrator.jobs import Job
from orchestrator.stages.workshop import Workshop
from orchestrator.store import pack_arrays

RANKING = "ranking.safetensors"


def rank(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Measure how much each point of the ranked pool is memorised by the ranking population."""
    import numpy as np

    from audits.data.memorisation import memorisation
    from audits.training.loop import logits

    ids, members = shop.scheduler.ranked_points(), list(shop.scheduler.ranking_members.values())
    points = shop.tensors(ids)
    inside = np.stack([np.isin(ids, member.train) for member in members])
    rows = []
    for member in members:
        found = logits(shop.model(shop.scheduler.trained(member), member), points.x).double().softmax(1)
        rows.append(found.gather(1, points.y[:, None]).squeeze(1).cpu().numpy())
    return {RANKING: pack_arrays({"memorisation": memorisation(np.stack(rows), inside)})}

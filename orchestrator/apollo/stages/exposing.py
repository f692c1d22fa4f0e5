"""Stage expose: how unique the gradients of each point are, by which the audited points may be chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audits.training.keeper import Phases
from audits.uniqueness.rankings import RANKINGS
from audits.uniqueness.watching import RANKING, percentile
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.ranking import RANKING as FILE
from orchestrator.apollo.stages.watching import watch
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays

if TYPE_CHECKING:
    pass

EXPOSURE = "exposure"


def expose(context: Context, job: Job) -> dict[str, bytes]:
    """Rank each point of the pool among those of the model that trains on it: ``exposure`` (pool,), in its order."""
    ids = context.design.ranked_points()
    found = np.full(len(ids), np.nan)
    place = np.argsort(ids)
    keepers = Phases(context.keeper)
    for number, member in enumerate(context.design.ranking_members.values()):
        _, trace = watch(context, member, keepers.of(str(number)))
        rows = place[np.searchsorted(ids, member.train, sorter=place)]
        found[rows] = percentile(RANKINGS[RANKING](trace, 0))
    return {FILE: pack_arrays({EXPOSURE: found})}

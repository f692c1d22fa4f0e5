"""Stage score: what was seen of all points at all checkpoints, as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from audits.data.duplicates import Borders, exact_copies
from audits.uniqueness.bits import log_uniqueness
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.run.scores import SCORES
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import pack_table, unpack_arrays, unpack_json
from orchestrator.gnq.given.design import GivenDesign, Group
from orchestrator.gnq.given.stages.looking import MODE, SEEN, members_of

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.arrays import Bools, Ids


def score(context: WorkerContext[GivenDesign], job: Job) -> dict[str, bytes]:
    """Return the table of points, groups one below the other, members first."""
    import pyarrow as pa

    members = members_of(context, job)
    return {SCORES: pack_table(pa.concat_tables([of_group(context, job, members, g) for g in job.document["counts"]]))}


def of_group(context: WorkerContext[GivenDesign], job: Job, members: Ids, group: Group) -> pa.Table:
    """Return the scores of the points of one group: a row a point, in the order of their ids."""
    import pyarrow as pa

    design = context.design
    ids = design.scored(members, group)
    looks = design.look_jobs(job.needs[0], group, len(ids))
    found = [context.store.get("look", each.key) for each in looks]
    seen = [unpack_arrays(each.read(SEEN)) for each in found]
    told = unpack_json(found[-1].read(METRICS))
    last, first = seen[-1], design.plan.audit.modes[0]
    bits = log_uniqueness(np.stack([each[f"{MODE}{first}"] for each in seen]), design.weights_of_steps)
    columns: dict[str, Any] = {
        "point_id": ids,
        "group": pa.array([group] * len(ids), pa.string()),
        "label": design.data.labels[ids],
        "uniqueness": last[f"{MODE}{first}"],
        **{f"uniqueness_{mode}": last[f"{MODE}{mode}"] for mode in design.plan.audit.modes[1:]},
        "log_uniqueness": bits,
        "bits": np.minimum(1.0, bits),
        "rank": ranks(bits),
        "loss": last["loss"],
        "correct": last["correct"],
        "squared_norm": last["squared_norm"],
        "relative_norm": np.sqrt(last["squared_norm"]) / told["weight_norm"],
        "copied": copied(context, ids),
    }
    return pa.table(columns)


def ranks(scores: np.ndarray[Any, np.dtype[np.float64]]) -> Ids:
    """Return the rank of every score, 1 the highest; of equal ones the first stands first."""
    found = np.empty(len(scores), np.int64)
    found[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return found


def copied(context: WorkerContext[GivenDesign], ids: Ids) -> Bools:
    """Return which of the points ``ids`` equal another of them, input for input; none of images that stay in files."""
    data = context.design.data
    if not isinstance(data.inputs, np.ndarray):
        return np.zeros(len(ids), bool)
    own = np.full(len(data), -1, np.int64)
    own[ids] = ids
    return np.isin(ids, list(exact_copies(data.inputs, ids, Borders(own, ids))))

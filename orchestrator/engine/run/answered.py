"""Recorded answers of a target, looked through before any work: do they hold all that the audit will ask about?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.ids import Points
from audits.errors import BadInput
from audits.queries.served.record import recorded
from audits.targets.recorded import answered_in, keys_of
from orchestrator.engine.given import GivenJobs
from orchestrator.engine.given_files import STAGE
from orchestrator.engine.run.opened import ANSWERS
from orchestrator.engine.store.payloads import unpack_table

if TYPE_CHECKING:
    import torch

    from audits.arrays import Ids

RECORDED = ("answers", "record")
"""The forms of targets that nobody can ask about anything else."""


def check_answers(design: Any) -> None:
    """Refuse recorded answers without one to a point that the audit asks about; of other plans nothing is looked at.

    The answers are those in the store, or in the files of the plan before they are there.
    """
    if not isinstance(design, GivenJobs) or design.target is None:
        return
    target, asked = design.target, design.asked_points()
    if asked is None or target.form(look=False) not in RECORDED:
        return
    known = answered(design)
    if known is None:
        return
    keys = keys_of(asked, lambda ids: inputs_of(design, ids))
    lacking = [point for point, key in zip(asked.tolist(), keys, strict=True) if key not in known]
    if lacking:
        raise BadInput(
            f"target.weights: {target.weights} has no answer to {len(lacking)} of {len(asked)} points that the audit "
            f"asks about (first: point {lacking[0]}); give answers to all of them, and to adaptive attacks, which ask "
            "about inputs of their own making, the address of the served model"
        )


def answered(design: GivenJobs) -> set[bytes] | None:
    """Return the keys of the inputs to which the target of a design has answers; None where its files are gone."""
    job, name = design.given_job("weights"), design.the_target.weights
    if design.store is not None and design.store.has(STAGE, job.key):
        return set(unpack_table(design.store.get(STAGE, job.key).read(ANSWERS))["key"].to_pylist())
    path = Path(name).expanduser()
    if not path.exists():
        return None
    if design.the_target.form(look=False) == "record":
        return set(recorded(path).keys())
    points = Points.of(design.data, design.plan.data.root)
    return set(keys_of(answered_in(name, points), lambda ids: inputs_of(design, ids)))


def inputs_of(design: GivenJobs, ids: Ids) -> torch.Tensor:
    """Return points of the data set as models see them."""
    return design.data.tensors(ids).x

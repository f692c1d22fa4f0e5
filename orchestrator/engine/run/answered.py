"""A target that is no weights, looked at before any work: has a record all answers, does a program take all inputs?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.ids import Points
from audits.data.tensors import as_float
from audits.errors import BadInput
from audits.queries.served.record import recorded
from audits.targets.forms import PROGRAMS, file_and_part
from audits.targets.lookups import lookup_in
from audits.targets.recorded import answered_in, keys_of
from orchestrator.engine.given import GivenJobs
from orchestrator.engine.given_files import STAGE
from orchestrator.engine.run.given import program_bytes
from orchestrator.engine.run.opened import ANSWERS, require_program, stored_form
from orchestrator.engine.store.payloads import unpack_table

if TYPE_CHECKING:
    import torch

    from audits.arrays import Ids

RECORDED = ("answers", "record")
"""The forms of targets that nobody can ask about anything else."""
AT_A_TIME = 4096
"""Points whose inputs are looked at together."""


def check_asked(design: Any) -> None:
    """Refuse a target that cannot answer about a point that the audit asks about, as far as that shows unrun.

    Such are recorded answers without one to it, and a program of token ids that has no such id. A program in the store
    needs permission as one in a file does. Of other plans nothing is looked at.
    """
    if not isinstance(design, GivenJobs) or design.target is None:
        return
    check_stored(design)
    if (asked := design.asked_points()) is None:
        return
    target = design.target
    if target.form(look=False) in RECORDED:
        check_answers(design, asked)
    for field, name in target.named(target.MODELS).items():
        if target.form(field) in PROGRAMS and Path(file_and_part(name)[0]).expanduser().exists():
            check_inputs(design, asked, name, target.form(field))


def check_stored(design: GivenJobs) -> None:
    """Refuse a model in the store that is of another form than that of the plan, or a program that may not run."""
    target = design.the_target
    for field, name in target.named(target.MODELS).items():
        job = design.given_job(field)
        if design.store is not None and design.store.has(STAGE, job.key):
            require_program(name, stored_form(target, field, design.store.get(STAGE, job.key)))


def check_inputs(design: GivenJobs, asked: Ids, name: str, form: str) -> None:
    """Refuse the program called ``name`` if it does not take the inputs of the points ``asked``."""
    require_program(name, form)
    lookup = lookup_in(form, program_bytes(name), name)
    for first in range(0, len(asked) if lookup else 0, AT_A_TIME):
        lookup.check(as_float(inputs_of(design, asked[first : first + AT_A_TIME])), name)


def check_answers(design: GivenJobs, asked: Ids) -> None:
    """Refuse recorded answers without one to each of the points ``asked``.

    The answers are those in the store, or in the files of the plan before they are there.
    """
    target = design.the_target
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

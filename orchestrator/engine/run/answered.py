"""A target that is no weights, before any work: has a record all answers, does a program answer as it should?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.data.ids import Points
from audits.data.tensors import as_float
from audits.errors import BadInput
from audits.queries.served.record import recorded
from audits.targets.answering import Answering
from audits.targets.forms import PROGRAMS, is_here, path_of
from audits.targets.programs import RUNS, answers_of
from audits.targets.recorded import answered_in, keys_of
from audits.targets.trying import points_to_try
from orchestrator.engine.given import GivenJobs
from orchestrator.engine.given_files import STAGE
from orchestrator.engine.run.given import program_bytes
from orchestrator.engine.run.opened import ANSWERS, reading_of, require_program, stored_form
from orchestrator.engine.run.passed import check_once
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.payloads import unpack_table

if TYPE_CHECKING:
    import torch

    from audits.arrays import Ids
    from orchestrator.engine.jobs.job import Job

RECORDED = ("answers", "record")
"""The forms of targets that nobody can ask about anything else."""


def check_asked(design: Any) -> None:
    """Refuse a target that cannot answer about a point that the audit asks about, as far as shows without a server.

    Such are recorded answers without one to it, and programs, which are run on a few of these points. A program
    in the store needs permission as one in a file does. Of other plans nothing is looked at.
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
        if target.form(field) in PROGRAMS and is_here(name):
            try_program(design, field, asked)


def check_stored(design: GivenJobs) -> None:
    """Refuse a model in the store that is of another form than that of the plan, or a program that may not run."""
    target = design.the_target
    for field, name in target.named(target.MODELS).items():
        job = design.given_job(field)
        if design.store is not None and design.store.has(STAGE, job.key):
            require_program(name, stored_form(target, field, design.store.get(STAGE, job.key)))


def planted(design: Any) -> list[Job]:
    """Return the jobs of given models in whose place the store has what the plan is not given (``stored_form``)."""
    found = []
    if isinstance(design, GivenJobs) and design.target is not None and design.store is not None:
        for field in design.target.named(design.target.MODELS):
            job = design.given_job(field)
            if design.store.has(STAGE, job.key):
                try:
                    stored_form(design.target, field, design.store.get(STAGE, job.key))
                except CorruptArtefact:
                    found.append(job)
    return found


def try_program(design: GivenJobs, field: str, asked: Ids) -> None:
    """Refuse the program in ``field`` if it does not answer about points ``asked``, or as the plan does not say.

    It is tried once in a process on the same points.
    """
    target = design.the_target
    name, form = target.named((field,))[field], target.form(field)
    require_program(name, form)
    data, reading = program_bytes(name), reading_of(target, field, design.target_classes)
    x = as_float(inputs_of(design, points_to_try(design.data.inputs, asked)))

    def answer() -> None:
        Answering(answers_of(RUNS[form](data, name)), reading, name)(x)

    asked_about = (str(x.dtype), str(tuple(x.shape)), x.cpu().numpy().tobytes())
    check_once(answer, form, name, data, repr(reading), *asked_about)


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
    path = path_of(name)
    if not path.exists():
        return None
    if design.the_target.form(look=False) == "record":
        return set(recorded(path).keys())
    points = Points.of(design.data, design.plan.data.root)
    return set(keys_of(answered_in(name, points), lambda ids: inputs_of(design, ids)))


def inputs_of(design: GivenJobs, ids: Ids) -> torch.Tensor:
    """Return points of the data set as models see them."""
    return design.data.tensors(ids).x

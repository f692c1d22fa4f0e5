"""Stage given, as every kind does it: a target's files, as the store keeps them for workers that need not see these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.data.catalogue import describe
from audits.data.ids import Points
from audits.data.regular import content_of
from audits.errors import BadInput
from audits.queries.served.record import identity, recorded
from audits.targets.answering import Answering
from audits.targets.checkpoint_files import check_bytes
from audits.targets.forms import PROGRAMS, is_here, path_of
from audits.targets.programs import RUNS
from audits.targets.recorded import answers_in, check_columns, of_points, of_record
from audits.targets.weights import Weights, read_weights, with_weights
from audits.training.loop import accuracy
from orchestrator.engine.given import IDS
from orchestrator.engine.given_files import record_of
from orchestrator.engine.plan.errors import under
from orchestrator.engine.plan.points import points_in
from orchestrator.engine.run.asked import ABOUT
from orchestrator.engine.run.models import METRICS, model_files
from orchestrator.engine.run.opened import (
    ANSWERS,
    BYTES,
    PROGRAM,
    ask_of,
    endpoint_of,
    reading_of,
    require_program,
)
from orchestrator.engine.run.passed import check_once
from orchestrator.engine.store.payloads import pack_arrays, pack_json, pack_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch
    from torch import nn

    from audits.arrays import Ids
    from audits.data.tensors import TensorSet
    from audits.queries.served.reading import Reading
    from audits.targets.forms import Form
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.plan.target import Target
    from orchestrator.engine.run.worker import WorkerContext

NOTES = "notes"


def points_files(points: Mapping[str, Ids]) -> dict[str, bytes]:
    """Return given lists of points as the files of an artefact."""
    return {IDS: pack_arrays(dict(points)), METRICS: pack_json({name: len(ids) for name, ids in points.items()})}


def check_target(plan: BasePlan, shaped: Callable[[], nn.Module], classes: int) -> None:
    """Refuse a given model that cannot be read or asked, as far as that shows; nothing is run, and no server asked.

    ``shaped`` makes a model of the plan's architecture, on the meta device if need be, which weights must fit;
    ``classes``: how many the target tells apart. A file that is gone passes where the plan knows its sha256.
    """
    target: Target = plan.target  # type: ignore[attr-defined]  # of kinds that know targets
    for field, name in target.named(target.MODELS).items():
        form, reading = target.form(field), reading_of(target, field, classes)
        if form == "address" and target.served is not None:
            endpoint_of(target)
            record_of(plan, target.served)
        elif is_here(name) or name not in target.sha256:
            check_file(name, form, plan, shaped, reading)


def check_file(name: str, form: Form, plan: BasePlan, shaped: Callable[[], nn.Module], reading: Reading) -> None:
    """Refuse a file of a given model that cannot be read, or does not fit."""
    target: Target = plan.target  # type: ignore[attr-defined]  # of kinds that know targets
    match form:
        case "weights":
            weights_of(name, target, shaped())
        case "torchscript":
            program_file(name, form)
        case "onnx":
            data = program_bytes(name)
            check_once(lambda: RUNS[form](data, name), form, name, data)
        case "record":
            recorded(path_of(name))
        case "answers":
            check_columns(name, reading)
            facts = describe(plan.data.name, plan.data.root)
            if facts.points:  # of a set that is not there they may not be known
                answers_in(name, points_in(plan.data, facts), reading, facts.classes)


def model_given(
    context: WorkerContext[Any], job: Job, build: Callable[[], nn.Module], points: TensorSet, test: TensorSet
) -> dict[str, bytes]:
    """Return the files of the model that ``job`` brings in, of whatever form: what it is, and how well it fits.

    ``build`` makes a model of the plan's architecture, for weights; ``points``: (some of) those that it was trained on,
    ``test``: (some of) those that it was not. A served model is asked about both; answers are recorded, so that no
    attack asks about them again. Raises BadInput for a model that cannot be read or does not fit.
    """
    target, field = context.plan.target, job.member
    name, form = target.named((field,))[field], target.form(field)
    device = context.laid_out.device
    if form == "weights":
        return given_files(name, build, points, test, device, target)
    reading = reading_of(target, field, context.laid_out.target_classes)
    about: dict[str, Any] = {"form": form, "field": field, "reading": reading.described}
    files: dict[str, bytes] = {}
    if form == "address":
        endpoint = endpoint_of(target)
        about |= {"endpoint": endpoint.described, "folder": identity(endpoint.described)}
    elif form in PROGRAMS:
        files[PROGRAM] = program_file(name, form)
    else:
        files[ANSWERS] = pack_table(recorded_answers(context, name, form, reading))
    model = Answering(ask_of(target, form, reading, name, files.__getitem__), reading, name, context.count_asked)
    return {**files, ABOUT: pack_json(about), METRICS: pack_json({**fitted(model, points, test), NOTES: []})}


def given_files(
    file: str,
    build: Callable[[], nn.Module],
    points: TensorSet,
    test: TensorSet,
    device: str,
    target: Target | None = None,
) -> dict[str, bytes]:
    """Return the files of a given model, those of a trained one: its weights, and how well it fits.

    ``file``: of its weights, for a model as ``build`` makes it; ``points``: (some of) those that it was trained on,
    ``test``: (some of) those that it was not. Raises BadInput for a file that does not fit.
    """
    model = build()
    weights = weights_of(file, target, model)
    model = with_weights(model, weights.state).to(device)
    return model_files(model, {**fitted(model, points, test), NOTES: list(weights.notes)})


def weights_of(file: str, target: Target | None, module: nn.Module) -> Weights:
    """Return the weights in a file that fit ``module``."""
    if target is not None and target.served is not None and file == target.weights:
        raise BadInput(f"target.served is given, but {file} holds weights, which are not served; leave it out")
    try:
        return read_weights(file, module)
    except BadInput as error:
        raise BadInput(under("target", str(error))) from None


def fitted(model: nn.Module, points: TensorSet, test: TensorSet) -> dict[str, float]:
    """Return how often a model is right at points that it was trained on, and at others."""
    return {"train_accuracy": accuracy(model, points), "test_accuracy": accuracy(model, test)}


def program_file(name: str, form: str) -> bytes:
    """Return a program as a file of an artefact; one that runs whatever its author wrote needs permission."""
    import numpy as np

    require_program(name, form)
    return pack_arrays({BYTES: np.frombuffer(program_bytes(name), np.uint8)})


def program_bytes(name: str) -> bytes:
    """Return what the file of a program holds."""
    path = path_of(name)
    try:
        check_bytes(path, name)
        return content_of(path)
    except (BadInput, OSError) as error:
        raise BadInput(under("target", str(error))) from None


def recorded_answers(context: WorkerContext[Any], name: str, form: str, reading: Reading) -> Any:
    """Return the table of recorded answers, a row of key and answer an input."""
    if form == "record":
        return of_record(name)
    data = context.laid_out.data

    def inputs(ids: Ids) -> torch.Tensor:
        return context.tensors(ids).x

    return of_points(name, inputs, Points.of(data, context.plan.data.root), reading, data.classes)

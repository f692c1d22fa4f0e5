"""Given models that are not weights of ours, as modules: a served model, recorded answers, a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from audits.queries.served.endpoint import Endpoint, mlflow_endpoint
from audits.queries.served.oracles import Served
from audits.queries.served.patience import Pace
from audits.queries.served.reading import Reading
from audits.targets.answering import Answering
from audits.targets.programs import RUNS, answers_of
from audits.targets.recorded import Recorded
from orchestrator.engine.run.asked import ABOUT
from orchestrator.engine.store.payloads import unpack_arrays, unpack_json, unpack_table

if TYPE_CHECKING:
    import torch

    from orchestrator.engine.plan.target import Target
    from orchestrator.engine.run.worker import WorkerContext
    from orchestrator.engine.store.store import Artefact

ANSWERS = "answers.parquet"
PROGRAM = "program.safetensors"
BYTES = "bytes"
MLFLOW_ANSWERS = "$.predictions"

Ask = Callable[["torch.Tensor"], Sequence[Any]]


def open_given(context: WorkerContext[Any], artefact: Artefact) -> Answering:
    """Return the model in an artefact of stage given: it asks what the plan of ``context`` names, or a file there."""
    about = unpack_json(artefact.read(ABOUT))
    target: Target = context.plan.target
    reading, name = Reading(**about["reading"]), target.named((about["field"],))[about["field"]]
    return Answering(ask_of(target, about, reading, name, artefact.read), reading, name, context.count_asked)


def ask_of(target: Target, about: Mapping[str, Any], reading: Reading, name: str, read: Callable[[str], bytes]) -> Ask:
    """Return what answers for the model called ``name``; ``read`` returns a file of its artefact."""
    if about["form"] == "address":
        return served(target, reading).answers
    if about["form"] in RUNS:
        return answers_of(RUNS[about["form"]](unpack_arrays(read(PROGRAM))[BYTES].tobytes(), name))
    return Recorded(unpack_table(read(ANSWERS)), name)


def served(target: Target, reading: Reading) -> Served:
    """Return the served model of a plan, whose answers go into its record."""
    asked = target.served
    assert asked is not None, "a served target is described"
    pace = Pace(asked.batch, asked.requests_per_second, asked.queries_per_second, asked.patience)
    return Served(endpoint_of(target), reading, pace, record=asked.record)


def endpoint_of(target: Target) -> Endpoint:
    """Return the endpoint that a plan names; raises BadInput for one that cannot be asked."""
    asked = target.served
    assert asked is not None, "a served target is described"
    names = ("item", "value_range", "identity", "token_env", "token_header", "ca_file", "plain", "timeout")
    settings = {name: getattr(asked, name) for name in names}
    if asked.encoding is not None:
        settings["encoding"] = asked.encoding
    if asked.template is not None:
        return Endpoint(target.weights, asked.template, asked.answers or "$", **settings)
    form = asked.form or "inputs"
    return mlflow_endpoint(target.weights, form, asked.columns, asked.answers or MLFLOW_ANSWERS, **settings)


def reading_of(target: Target, field: str, classes: int) -> Reading:
    """Return how the answers of the model in ``field`` read, of so many classes."""
    asked = target.served if field == "weights" else None
    if asked is None:
        return Reading(classes, "logits")
    return Reading(classes, asked.gives, asked.class_names, asked.decimals)

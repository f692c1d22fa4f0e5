"""Given models that are not weights of ours, as modules: a served model, recorded answers, a program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from audits.own.permission import require_permission_for_programs
from audits.queries.served.endpoint import Endpoint, mlflow_endpoint
from audits.queries.served.oracles import Served
from audits.queries.served.patience import Pace
from audits.queries.served.reading import Reading
from audits.targets.answering import Answering
from audits.targets.forms import Form, is_here, may_be_script
from audits.targets.programs import RUNS, answers_of
from audits.targets.recorded import Recorded
from orchestrator.engine.run.asked import ABOUT
from orchestrator.engine.run.worker import WEIGHTS
from orchestrator.engine.store.faults import CorruptArtefact, damaged
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


def open_given(context: WorkerContext[Any], artefact: Artefact) -> Answering | None:
    """Return the model in an artefact of stage given: it asks what the plan of ``context`` names, or a file there.

    None for weights. Raises CorruptArtefact where the artefact is of another form than the model of the plan, and
    BadInput for a program that may not run.
    """
    target: Target = context.plan.target
    field = next(each for each in target.named(target.MODELS) if context.design.given_model(each).key == artefact.key)
    form = stored_form(target, field, artefact)
    if form == "weights":
        return None
    reading, name = reading_of(target, field, classes_in(artefact)), target.named((field,))[field]
    return Answering(ask_of(target, form, reading, name, artefact.read), reading, name, context.count_asked)


def stored_form(target: Target, field: str, artefact: Artefact) -> Form:
    """Return the form of the model in ``field``, which is that of its ``artefact``; raises CorruptArtefact if it isn't.

    The plan says it: whoever can write into a store could otherwise have a program run where weights are meant. Only
    where its file is gone, and the name of that may be one of weights or of TorchScript, the artefact is asked, whose
    program must then be the file that the plan knows, as all programs must.
    """
    name = target.named((field,))[field]
    expected = target.form(field)
    form: Form = "weights" if WEIGHTS in artefact.files else about_given(artefact)["form"]
    gone = not is_here(name)
    known = form == expected or (gone and form == "torchscript" and expected == "weights" and may_be_script(name))
    if not known:
        raise other(artefact, f"is of the form {str(form)[:40]!r}, and target.{field} of the plan of {expected!r}")
    if form != "weights":
        classes_in(artefact)
    if form in RUNS and hashlib.sha256(program_in(artefact.read)).hexdigest() != target.sha256.get(name):
        raise other(artefact, f"is another program than target.{field} of the plan, by its sha256")
    return form


def other(artefact: Artefact, what: str) -> CorruptArtefact:
    """Return the error of an artefact that is not what the plan is given."""
    return CorruptArtefact(
        f"artefact {artefact.stage}/{artefact.key} {what}: somebody else may have put it there; run again with "
        "--rebuild to read the model anew"
    )


def about_given(artefact: Artefact) -> Mapping[str, Any]:
    """Return what the artefact of a given model that is no weights says of it; raises CorruptArtefact for nonsense."""
    if ABOUT not in artefact.files:
        raise damaged(artefact.stage, artefact.key, ABOUT, "is missing")
    found = unpack_json(artefact.read(ABOUT))
    if not isinstance(found, Mapping) or "form" not in found:
        raise damaged(artefact.stage, artefact.key, ABOUT, "does not say what it is")
    return found


def classes_in(artefact: Artefact) -> int:
    """Return how many classes a given model tells apart, by its artefact: all else about answers the plan says."""
    reading = about_given(artefact).get("reading")
    classes = reading.get("classes") if isinstance(reading, Mapping) else None
    if type(classes) is not int or classes < 2:
        raise damaged(artefact.stage, artefact.key, ABOUT, "does not say how many classes there are")
    return classes


def ask_of(target: Target, form: Form, reading: Reading, name: str, read: Callable[[str], bytes]) -> Ask:
    """Return what answers for the model called ``name``; ``read`` returns a file of its artefact.

    Raises BadInput for a program that may not run.
    """
    if form == "address":
        return served(target, reading).answers
    if form in RUNS:
        require_program(name, form)
        return answers_of(RUNS[form](program_in(read), name))
    return Recorded(unpack_table(read(ANSWERS)), name)


def program_in(read: Callable[[str], bytes]) -> bytes:
    """Return the file of a program that an artefact keeps; ``read`` returns one of its files."""
    arrays = unpack_arrays(read(PROGRAM))
    if BYTES not in arrays:
        raise CorruptArtefact(f"{PROGRAM} holds no program; run again with --rebuild")
    return arrays[BYTES].tobytes()


def require_program(name: str, form: str) -> None:
    """Raise BadInput unless the program may run; ONNX graphs only compute and always may."""
    if form == "torchscript":
        require_permission_for_programs([name])


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

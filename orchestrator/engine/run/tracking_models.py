"""Models that an audit has judged, logged in MLflow so that they can be served: models from code, nothing pickled.

The weights of a key are logged once to an experiment; other runs that have the model refer to it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.writing import write_whole
from orchestrator.engine.media import markdown, visible
from orchestrator.engine.published import Published
from orchestrator.engine.run.tracking_names import NOTE, flatten, settled
from orchestrator.engine.run.worker import WEIGHTS
from orchestrator.engine.store.payloads import pack_json

if TYPE_CHECKING:
    import numpy as np
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.models import ModelSignature

    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.store.store import Artefact, Store

SCRIPT = Path(__file__).with_name("served_model.py")
KEY = "orch.key"
LEVELS = 8
"""Of the noise in an input example, which are short in JSON."""


@dataclass(frozen=True)
class ToLog:
    """The models of a finished run that MLflow is to have; ``plan`` is that of the run."""

    models: Sequence[Published]
    plan: BasePlan
    store: Store


@dataclass
class Logged:
    """What was logged: name → ``models:/…``, and of how many models, of how many bytes, the weights are new there."""

    uris: dict[str, str] = field(default_factory=dict)
    new: int = 0
    bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as the run tells of it."""
        return {"uris": self.uris, "new": self.new, "bytes": self.bytes}


def log_models(client: MlflowClient, experiment: str, runs: Mapping[str, str], parent: str, wanted: ToLog) -> Logged:
    """Log the weights that the experiment lacks, and let the parent and each setting's run refer to its models.

    ``runs``: setting → run. A target of which only answers are known has no weights, and is left out.
    """
    logged = Logged()
    of_run: dict[str, list[str]] = {}
    for model in wanted.models:
        artefact = wanted.store.get(model.reference.stage, model.reference.key)
        if WEIGHTS not in artefact.files:
            continue
        found = known(client, experiment, model.reference.key)
        if found is None:
            found = log_model(client, experiment, parent, model, artefact, wanted.plan)
            logged.new += 1
            logged.bytes += artefact.files[WEIGHTS].size
        logged.uris[model.name] = f"models:/{found}"
        for run in (parent, *(runs[setting] for setting in model.settings if setting in runs)):
            of_run.setdefault(run, []).append(found)
    for run, models in of_run.items():
        refer(client, run, models)
    return logged


def known(client: MlflowClient, experiment: str, key: str) -> str | None:
    """Return the model of an experiment that has the weights of ``key``, None where it has none."""
    from mlflow.entities import LoggedModelStatus

    found = client.search_logged_models([experiment], f"tags.`{KEY}` = '{key}'")
    return next((str(model.model_id) for model in found if model.status == LoggedModelStatus.READY), None)


def log_model(
    client: MlflowClient, experiment: str, run: str, model: Published, artefact: Artefact, plan: BasePlan
) -> str:
    """Log one model and return its id; one that MLflow has not in full is marked as failed."""
    tags = tags_of(model, plan)
    settings = settled(flatten({"model": model.model.model_dump(mode="json")}))
    entry = client.create_logged_model(
        experiment,
        name=model.name,
        source_run_id=run,
        tags={**tags, NOTE: markdown(note(model, plan))},
        params={name: visible(str(value), "\n\t")[:500] for name, value in settings.items()},
        model_type="classifier",
    )
    whole = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            save(Path(folder), entry, run, model, artefact.read(WEIGHTS), tags, plan)
            client.log_model_artifacts(entry.model_id, str(Path(folder) / "model"))
        whole = True
    finally:
        client.finalize_logged_model(entry.model_id, "READY" if whole else "FAILED")
    return str(entry.model_id)


def save(
    folder: Path,
    entry: LoggedModel,
    run: str,
    model: Published,
    weights: bytes,
    tags: Mapping[str, str],
    plan: BasePlan,
) -> None:
    """Write a model as MLflow keeps it into ``folder``/model."""
    from mlflow import pyfunc
    from mlflow.models import Model

    described = model.described(plan.compute.threads)
    files = {"weights": folder / "weights.safetensors", "description": folder / "description.json"}
    script = Path(shutil.copy(SCRIPT, folder))  # MLflow writes its place down, which may be in somebody's home
    write_whole(files["weights"], weights)
    write_whole(files["description"], pack_json(described))
    metadata = {**tags, "classes": described["classes"], "value_range": described["value_range"]}
    pyfunc.save_model(
        path=str(folder / "model"),
        python_model=str(script),
        artifacts={name: str(file) for name, file in files.items()},
        signature=signature(model),
        input_example=example(model.data),
        metadata=metadata,
        pip_requirements=[f"{package}=={version(package)}" for package in ("mlflow", "orch-audit", "torch")],
        mlflow_model=Model(
            artifact_path=entry.artifact_location,
            run_id=run,
            model_uuid=entry.model_id,
            model_id=entry.model_id,
            metadata=metadata,
        ),
    )


def tags_of(model: Published, plan: BasePlan) -> dict[str, str]:
    """Return what a model is, as tags."""
    return {
        KEY: model.reference.key,
        "orch.stage": model.reference.stage,
        "orch.kind": plan.kind,
        "orch.made_by": model.made_by,
        "orch.seed": str(plan.seed),
        "orch.data": visible(model.data.name),
        "orch.fingerprint": model.data.fingerprint,
        "orch.plan_hash": plan.plan_hash,
    }


def note(model: Published, plan: BasePlan) -> str:
    """Return what a reader of the model's page must know first."""
    made = {"train": "as it was trained", "given": "as it was given"}.get(model.made_by, f"made by {model.made_by}")
    return (
        f"A model that an audit ({plan.kind}) has judged, {made}, with data of {model.data.name}. What it discloses "
        "about its training points stands in the source run, in report.html. Whoever reads this page has the weights."
    )


def signature(model: Published) -> ModelSignature:
    """Return dtypes and shapes: points as the data set has them, as floats; logits and labels, by name."""
    import numpy as np
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema, TensorSpec

    number, index = np.dtype(np.float32), np.dtype(np.int64)
    inputs: list[ColSpec | TensorSpec] = [TensorSpec(number, (-1, *model.data.shape))]
    outputs: list[ColSpec | TensorSpec] = [
        TensorSpec(number, (-1, len(model.classes)), "logits"),
        TensorSpec(index, (-1,), "labels"),
    ]
    return ModelSignature(Schema(inputs), Schema(outputs))


def example(data: Dataset) -> np.ndarray[Any, Any]:
    """Return one input (1, …) that is no point of the data: noise within its range, zeros where it has none."""
    import numpy as np

    if data.value_range is None:
        return np.zeros((1, *data.shape), np.float32)
    low, high = data.value_range
    steps = np.random.default_rng(0).integers(0, LEVELS + 1, (1, *data.shape))
    return (low + (high - low) * steps / LEVELS).astype(np.float32)


def refer(client: MlflowClient, run: str, models: Sequence[str]) -> None:
    """Let a run list models as its own, each once."""
    from mlflow.entities import LoggedModelOutput

    outputs = client.get_run(run).outputs
    listed = {each.model_id for each in outputs.model_outputs} if outputs else set()
    missing = [LoggedModelOutput(model, step=0) for model in dict.fromkeys(models) if model not in listed]
    if missing:
        client.log_outputs(run, missing)

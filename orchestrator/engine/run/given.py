"""Stage given, as every kind does it: a target's files, as the store keeps them for workers that need not see these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.errors import BadInput
from audits.targets.weights import read_weights, with_weights
from audits.training.loop import accuracy
from orchestrator.engine.given import IDS
from orchestrator.engine.plan.errors import under
from orchestrator.engine.run.models import METRICS, model_files
from orchestrator.engine.store.payloads import pack_arrays, pack_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import nn

    from audits.arrays import Ids
    from audits.data.tensors import TensorSet

NOTES = "notes"


def points_files(points: Mapping[str, Ids]) -> dict[str, bytes]:
    """Return given lists of points as the files of an artefact."""
    return {IDS: pack_arrays(dict(points)), METRICS: pack_json({name: len(ids) for name, ids in points.items()})}


def given_files(
    file: str, build: Callable[[], nn.Module], points: TensorSet, test: TensorSet, device: str
) -> dict[str, bytes]:
    """Return the files of a given model, those of a trained one: its weights, and how well it fits.

    ``file``: of its weights, for a model as ``build`` makes it; ``points``: (some of) those that it was trained on,
    ``test``: (some of) those that it was not. Raises BadInput for a file that does not fit.
    """
    model = build()
    try:
        weights = read_weights(file, model)
    except BadInput as error:
        raise BadInput(under("target", str(error))) from None
    model = with_weights(model, weights.state).to(device)
    metrics: dict[str, Any] = {"train_accuracy": accuracy(model, points), "test_accuracy": accuracy(model, test)}
    return model_files(model, {**metrics, NOTES: list(weights.notes)})

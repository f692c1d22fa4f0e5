"""Models as the stages of every kind train and keep them: one training, its files, and the privacy that was spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput
from audits.training.accounting import spent
from audits.training.loop import accuracy
from audits.training.recipe import Recipe
from orchestrator.engine.run.worker import WEIGHTS
from orchestrator.engine.store.payloads import pack_json, pack_weights

if TYPE_CHECKING:
    from torch import nn

    from audits.data.tensors import TensorSet

METRICS = "metrics.json"


def trained_files(
    name: str,
    train: Callable[[], nn.Module],
    points: TensorSet,
    recipe: Recipe,
    test: TensorSet | None = None,
) -> dict[str, bytes]:
    """Return the files of the model that ``train`` makes of ``points``: its weights and how well it fits.

    ``test``: points on which it is measured too. Raises BadInput for the recipe of ``name`` when its training diverges.
    """
    with divergence_named(name):
        model = train()
    measured = {} if test is None else {"test_accuracy": accuracy(model, test)}
    return model_files(model, {"train_accuracy": accuracy(model, points), **privacy(recipe, len(points)), **measured})


def model_files(model: nn.Module, metrics: Mapping[str, Any]) -> dict[str, bytes]:
    """Return a model's weights and what was measured of it as the files of an artefact."""
    return {WEIGHTS: pack_weights(model), METRICS: pack_json(dict(metrics))}


@contextmanager
def divergence_named(name: str) -> Iterator[None]:
    """Turn a training that diverges into ``BadInput`` that names the model and the recipe."""
    try:
        yield
    except FloatingPointError as error:
        raise BadInput(f"recipe: {name}: {error}") from None


def privacy(recipe: Recipe, points: int) -> dict[str, float | str]:
    """Return the (ε, δ) that DP-SGD has spent and who counts it; nothing for a recipe that promises nothing.

    ``epsilon_low``: the lower end of what the accountant leaves of ε, where it has one.
    """
    found = spent(recipe, points)
    if not recipe.private or not math.isfinite(found.epsilon):
        return {}
    low = {} if found.low is None else {"epsilon_low": found.low}
    return {"epsilon": found.epsilon, **low, "delta": found.delta, "accountant": found.accountant}

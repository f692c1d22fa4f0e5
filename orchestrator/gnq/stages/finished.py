"""A GNQ model from its first weights to the files of its artefact, whoever trains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from audits.data.tensors import TensorSet
from audits.seeds import Purpose, derive_seed
from audits.training.accounting import steps_per_epoch
from audits.training.loop import accuracy, logits
from audits.uniqueness.accumulate import steps_of
from orchestrator.engine.run.models import model_files, privacy
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.stored import ANSWERS, tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from audits.training.recipe import Recipe
    from orchestrator.gnq.design import Watched


def untrained(context: Context, seed: int) -> nn.Module:
    """Return a model with the first weights that a training by ``seed`` starts from."""
    design = context.design
    found: nn.Module = design.build(derive_seed(seed, Purpose.INIT)).to(design.device)
    return found


def seed_of(seed: int) -> int:
    """Return the seed of the order of the points, as ``train_model`` derives it."""
    return derive_seed(seed, Purpose.FIT)


def finished(
    context: Context,
    model: Watched,
    found: nn.Module,
    points: TensorSet,
    recipe: Recipe,
    kept: NDArray[np.bool_] | None = None,
    **measured: int,
) -> dict[str, bytes]:
    """Return the files of a trained model: weights, logits where it is asked, how well it fits, ``measured`` beside."""
    design = context.design
    answers: dict[str, NDArray[Any]] = {
        name: logits(found, tensors(context, ids).x).float().cpu().numpy()
        for name, ids in design.points_by_name(model).items()
    }
    answers["kept"] = model.half if kept is None else kept
    metrics = {
        "points": len(points),
        "train_accuracy": accuracy(found, points),
        "test_accuracy": accuracy(found, tensors(context, design.drawn.test)),
        **steps(recipe, len(points)),
        **privacy(recipe, len(points)),
        **measured,
    }
    return {**model_files(found, metrics), ANSWERS: pack_arrays(answers)}


def steps(recipe: Recipe, points: int) -> dict[str, int]:
    """Return how many steps a training takes, and how many points its last batch has; private ones: on average."""
    if recipe.private:
        return {"steps": recipe.epochs * steps_per_epoch(recipe, points), "last_batch": min(recipe.batch_size, points)}
    return {"steps": steps_of(recipe, points), "last_batch": points % recipe.batch_size or recipe.batch_size}

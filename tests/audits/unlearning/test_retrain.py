"""Retraining from scratch, settings as a recipe, and batches of a single point."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.training.fit import train_model
from audits.training.recipe import Recipe
from audits.training.team import ALONE
from audits.unlearning import make_unlearner
from audits.unlearning.student import student_forward
from tests.audits.unlearning.cases import (
    CLASSES,
    FEATURES,
    FORGET,
    RECIPE,
    RETAIN,
    build,
    joined,
    points,
    same_state,
    trained,
)


def test_a_lone_point_meets_the_running_statistics_of_batch_norm_and_leaves_them() -> None:
    model = make_model("mlp", {"hidden": [8], "batch_norm": True}).build((FEATURES,), CLASSES, 0).train()
    student_forward(model, ALONE)(points(9, 1).x, 9)
    before, lone = copy.deepcopy(model.state_dict()), points(1, 2).x
    found = student_forward(model, ALONE)(lone, 1)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert torch.equal(found, model.eval()(lone))


def test_settings_become_the_recipe_that_they_describe() -> None:
    method = make_unlearner("finetune", {"learning_rate": 0.3, "optimizer": "adam", "schedule": "constant"})
    recipe = method.tuning(clip_norm=2.0)
    assert (recipe.learning_rate, recipe.optimizer, recipe.schedule) == (0.3, "adam", "constant")
    assert (recipe.batch_size, recipe.weight_decay, recipe.clip_norm) == (64, 5e-4, 2.0)


def test_retraining_without_a_forget_set_reproduces_the_target_and_ignores_the_given_weights() -> None:
    data = joined(points(FORGET, 1), points(RETAIN, 2))
    nothing = TensorSet(data.x[:0], data.y[:0])
    target = train_model(build, data, RECIPE, 17)
    retrain = make_unlearner("retrain", {})
    for given in (target, build(99)):
        found = retrain.unlearn(given, nothing, data, seed=17, recipe=RECIPE, build=build)
        assert same_state(found, target)


@pytest.mark.parametrize("missing", ["recipe", "build"])
def test_retraining_needs_recipe_and_architecture(missing: str) -> None:
    given: dict[str, Recipe | Callable[[int], nn.Module]] = {"recipe": RECIPE, "build": build}
    del given[missing]
    with pytest.raises(BadInput, match="retrain needs"):
        make_unlearner("retrain", {}).unlearn(trained(), points(3, 1), points(9, 2), seed=0, **given)

"""Small models, sets and settings on which the tests run every unlearning method."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.training.fit import train_model
from audits.training.recipe import Recipe
from audits.unlearning import make_unlearner

FEATURES, CLASSES, FORGET, RETAIN = 5, 3, 11, 21
RECIPE = Recipe(optimizer="sgd", learning_rate=0.1, epochs=3, batch_size=8)
SETTINGS: dict[str, dict[str, Any]] = {
    "identity": {},
    "retrain": {},
    "gradient_ascent": {"learning_rate": 0.05, "epochs": 3, "batch_size": 4},
    "finetune": {"learning_rate": 0.05, "epochs": 3, "batch_size": 8},
    "scrub": {"learning_rate": 0.01, "epochs": 3, "batch_size": 8, "forget_batch_size": 4},
    "bad_teacher": {"learning_rate": 0.05, "epochs": 3, "batch_size": 8},
    "random_label": {"learning_rate": 0.05, "epochs": 3, "batch_size": 8},
    "salun": {"learning_rate": 0.05, "epochs": 3, "batch_size": 8},
    "sfr_on": {"learning_rate": 0.02, "iterations": 12, "batch_size": 8, "forget_batch_size": 4},
}
CONTROLS = {"identity", "retrain"}


def build(seed: int) -> nn.Module:
    return make_model("mlp", {"hidden": [8], "batch_norm": True, "dropout": 0.2}).build((FEATURES,), CLASSES, seed)


def plain(seed: int = 1) -> nn.Module:
    return make_model("mlp", {"hidden": [8]}).build((FEATURES,), CLASSES, seed).double().eval()


def points(count: int, seed: int, dtype: torch.dtype = torch.float32) -> TensorSet:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, FEATURES, generator=generator, dtype=torch.float64).to(dtype)
    return TensorSet(x, torch.randint(CLASSES, (count,), generator=generator))


def joined(one: TensorSet, two: TensorSet) -> TensorSet:
    return TensorSet(torch.cat([one.x, two.x]), torch.cat([one.y, two.y]))


def trained() -> nn.Module:
    return copy.deepcopy(original())


@cache
def original() -> nn.Module:
    return train_model(build, joined(points(FORGET, 1), points(RETAIN, 2)), RECIPE, 3)


def run(name: str, model: nn.Module, seed: int = 4, **settings: Any) -> nn.Module:
    method = make_unlearner(name, {**SETTINGS[name], **settings})
    dtype = next(model.parameters()).dtype
    return method.unlearn(
        model, points(FORGET, 1, dtype), points(RETAIN, 2, dtype), seed=seed, recipe=RECIPE, build=build
    )


@dataclass
class Snapshot:
    """Everything of a model that unlearning could disturb."""

    model: nn.Module
    state: dict[str, torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.state = copy.deepcopy(self.model.state_dict())
        self.flags = [parameter.requires_grad for parameter in self.model.parameters()]
        self.places = [value.data_ptr() for value in self.model.state_dict().values()]
        self.grads = [None if p.grad is None else p.grad.clone() for p in self.model.parameters()]
        self.modes = [module.training for module in self.model.modules()]
        self.hooks = [len(module._forward_hooks) for module in self.model.modules()]

    def assert_unchanged(self) -> None:
        now = self.model.state_dict()
        assert now.keys() == self.state.keys()
        assert all(torch.equal(now[key], self.state[key]) for key in now)
        assert [value.data_ptr() for value in now.values()] == self.places
        assert [parameter.requires_grad for parameter in self.model.parameters()] == self.flags
        assert [module.training for module in self.model.modules()] == self.modes
        assert [len(module._forward_hooks) for module in self.model.modules()] == self.hooks
        for parameter, grad in zip(self.model.parameters(), self.grads, strict=True):
            assert (parameter.grad is None) == (grad is None)
            assert grad is None or torch.equal(parameter.grad, grad)


def same_state(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)

"""Training of users' own in the place of our loop: ``recipe.fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.training.fit import fit
from audits.training.recipe import Recipe
from orchestrator.kinds import check_against_data, open_design
from tests.audits.unlearning.cases import points
from tests.cases.own_components import edit, own_plan
from tests.cases.smallest_plans import smallest_plan

TRAINING = '''
import torch
import torch.nn.functional as F

def fit(model, data, seed, epochs, rate: float = 0.1):
    """A loop of one's own, over all points at once."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    x, y = data.all()
    for _ in range(epochs):
        optimizer.zero_grad()
        F.cross_entropy(model(x + torch.rand(()) * 1e-3), y).backward()
        optimizer.step()

class Trainer:
    def fit(self, data, seed):
        return torch.nn.Sequential(torch.nn.Linear(5, 3))

def other(data):
    return torch.nn.Linear(2, 2)

def moves(model, data):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)

def diverges(model, data):
    with torch.no_grad():
        model[0].weight.fill_(float("nan"))

def without(model):
    pass
'''


@pytest.fixture(autouse=True)
def training(folder: Path) -> Path:
    (folder / "training.py").write_text(TRAINING)
    return folder


def recipe(name: str, **values: Any) -> Recipe:
    return Recipe(fit=f"python:training:{name}", **values)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 3))


@pytest.mark.long
def test_models_are_keyed_by_its_source(training: Path, tmp_path: Path) -> None:
    """In short: ``test_own_models.py``, of an edit of a model."""
    values = {"recipe": {"fit": "python:training:fit", "epochs": 2, "settings": {"rate": 0.3}}}
    plan = own_plan(tmp_path / "store", **values)
    check_against_data(plan)
    before = {job.key for job in open_design(plan).jobs()}
    edit(training / "training.py", "epochs):\n        o", "epochs + 1):\n        o")
    assert not before & {job.key for job in open_design(own_plan(tmp_path / "store", **values)).jobs()}


def test_it_is_given_what_it_has_parameters_for_and_draws_from_its_seed() -> None:
    data = points(20, 1)
    state = torch.get_rng_state()
    one, same, other, longer = (
        fit(net(), data, recipe("fit", epochs=epochs, settings={"rate": 0.2}), seed=seed).state_dict()["0.weight"]
        for epochs, seed in ((3, 1), (3, 1), (3, 2), (4, 1))
    )
    assert torch.equal(one, same) and not torch.equal(one, other) and not torch.equal(one, longer)
    assert not torch.equal(torch.get_rng_state(), state), "net() seeds the generator here"
    made = fit(net(), data, recipe("Trainer"), seed=1)
    assert not made.training and set(made.state_dict()) == {"0.weight", "0.bias"}


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("other", {}, r"returned a model with 0.weight of shape none, but model\.name has \(3, 5\)"),
        ("moves", {}, "moved 0.bias, which is frozen"),
        ("without", {}, "has no parameter `data`"),
        ("fit", {"settings": {"rat": 1}}, "recipe.settings.rat is no parameter of .* .did you mean 'rate'"),
        ("fit", {"settings": {"seed": 1}}, "recipe.settings.seed is no parameter"),
    ],
)
def test_what_it_may_not_do_is_refused_in_a_line(name: str, values: dict[str, Any], says: str) -> None:
    model = net()
    model.get_parameter("0.bias").requires_grad_(False)
    with pytest.raises(BadInput, match=says):
        fit(model, points(20, 1), recipe(name, **values), seed=1)


def test_a_model_that_diverges_is_named() -> None:
    with pytest.raises(FloatingPointError, match="is not finite"):
        fit(net(), points(20, 1), recipe("diverges"), seed=1)


def test_recipes_that_cannot_work_are_refused(tmp_path: Path) -> None:
    for values, says in (
        ({"settings": {"rate": 1}}, "which only recipe.fit reads"),
        ({"fit": "training:fit"}, "write it as python:module:name"),
        (
            {"fit": "python:training:fit", "noise_multiplier": 1.0, "max_grad_norm": 1.0},
            "needs our own loop",
        ),
    ):
        with pytest.raises(BadInput, match=says):
            Recipe(**values)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="audits of kind gnq watch every step"):
        smallest_plan("gnq", tmp_path, **{"recipe.fit": "python:training:fit"})
    with pytest.raises(BadInput, match=r"has no 'fitt' \(did you mean 'fit'"):
        check_against_data(own_plan(tmp_path, **{"recipe.fit": "python:training:fitt"}))

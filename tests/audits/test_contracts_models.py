"""Every architecture: its weights come from its seed alone, points do not meet, all of it learns and can be stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import MODELS, make_model
from audits.models.layers import layers_of
from audits.training.fit import fit
from audits.training.recipe import Recipe

CLASSES = 5


@dataclass(frozen=True)
class Small:
    """A small model of one architecture and the ``shape`` of points that it reads; ``tokens``: of a vocabulary."""

    settings: dict[str, Any]
    shape: tuple[int, ...] = (3, 32, 32)
    tokens: int = 0

    def build(self, name: str, seed: int = 1) -> nn.Module:
        return make_model(name, self.settings).build(self.shape, CLASSES, seed)

    def points(self, count: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(count)
        if self.tokens:
            return torch.randint(1, self.tokens, (count, *self.shape), generator=generator)
        return torch.rand(count, *self.shape, generator=generator)


SMALL = {
    "bert": Small({"vocabulary": 15, "hidden": 8, "heads": 2, "intermediate": 10, "longest": 9}, (6,), 15),
    "cnn": Small({"channels": [4, 6], "hidden": 8, "dropout": 0.1}),
    "inception_v3": Small({"width": 2}, (3, 75, 75)),
    "mlp": Small({"hidden": [12], "batch_norm": True, "dropout": 0.1}),
    "resnet18": Small({"width": 4}),
    "resnet50": Small({"width": 2}, (3, 16, 16)),
    "swin_t": Small({"width": 8, "depths": [1, 1, 2, 1]}),
    "vgg16": Small({"width": 2}),
    "vgg19": Small({"width": 2}),
}


def same_state(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def settled(model: nn.Module, x: torch.Tensor) -> nn.Module:
    """Return ``model`` in eval mode, its BatchNorm with the statistics of ``x``, as after training on it."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        model.train()(x)
    return model.eval()


def test_every_registered_architecture_is_here() -> None:
    assert set(MODELS) == set(SMALL)


@pytest.mark.parametrize("name", MODELS)
def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone(name: str) -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first = SMALL[name].build(name)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(12)
    assert same_state(first, SMALL[name].build(name))
    other = dict(SMALL[name].build(name, seed=2).named_parameters())
    head = layers_of(first)[-1].name
    assert not torch.equal(first.get_parameter(f"{head}.weight"), other[f"{head}.weight"])


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_is_one_row_a_point_and_does_not_depend_on_the_batch(name: str) -> None:
    x = SMALL[name].points(6)
    x = x if SMALL[name].tokens else x.double()
    model = settled(SMALL[name].build(name).double(), x)
    with torch.no_grad():
        whole, alone = model(x), torch.cat([model(one[None]) for one in x])
    assert whole.shape == (6, CLASSES)
    assert torch.allclose(whole, alone, rtol=0, atol=1e-10)
    assert float(whole.std(0).max()) > 1e-4  # else nothing was compared


@pytest.mark.parametrize("name", MODELS)
def test_training_moves_every_parameter_and_weights_survive_a_round_trip(name: str) -> None:
    small = SMALL[name]
    model, untouched = small.build(name), small.build(name)
    data = TensorSet(small.points(16), torch.arange(16) % CLASSES)
    fit(model, data, Recipe(optimizer="sgd", learning_rate=0.1, epochs=2, batch_size=8), seed=0)
    assert not model.training
    for (key, new), (_, old) in zip(model.named_parameters(), untouched.named_parameters(), strict=True):
        assert not torch.equal(new, old), key
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    other = small.build(name, seed=9)
    other.load_state_dict(safetensors.torch.load(safetensors.torch.save(state)))
    assert same_state(model, other)
    with torch.no_grad():
        assert torch.equal(model(data.x), other.eval()(data.x))


@pytest.mark.parametrize("name", MODELS)
def test_a_single_class_and_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} needs at least 2 classes"):
        make_model(name, SMALL[name].settings).build(SMALL[name].shape, 1, 0)
    with pytest.raises(TypeError, match="no_such_setting"):
        make_model(name, {"no_such_setting": 1})

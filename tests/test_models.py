"""Architectures: equal seeds give equal weights, nothing global is touched, wrong settings are refused."""

from __future__ import annotations

import pytest
import safetensors.torch
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import MODELS, make_model
from audits.training.loop import fit
from audits.training.recipe import Recipe

IMAGE = (3, 8, 8)
CLASSES = 5
SETTINGS: dict[str, dict[str, object]] = {
    "mlp": {"hidden": [12], "batch_norm": True, "dropout": 0.1},
    "cnn": {"channels": [4, 6], "hidden": 8, "dropout": 0.1},
    "resnet18": {"width": 4},
}


def build(name: str, seed: int = 1) -> nn.Module:
    return make_model(name, SETTINGS[name]).build(IMAGE, CLASSES, seed)


def images(count: int) -> torch.Tensor:
    return torch.rand(count, *IMAGE, generator=torch.Generator().manual_seed(count))


def same_state(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_every_registered_architecture_is_tested_here() -> None:
    assert set(MODELS) == set(SETTINGS)


@pytest.mark.parametrize("name", MODELS)
def test_equal_seeds_give_equal_weights_whatever_the_global_generator(name: str) -> None:
    torch.manual_seed(11)
    first = build(name)
    torch.manual_seed(12)
    assert same_state(first, build(name))
    assert not same_state(first, build(name, seed=2))


@pytest.mark.parametrize("name", MODELS)
def test_building_leaves_the_global_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    build(name)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", MODELS)
def test_logits_have_one_row_a_point_and_one_column_a_class(name: str) -> None:
    assert build(name).eval()(images(7)).shape == (7, CLASSES)


@pytest.mark.parametrize("name", MODELS)
def test_in_eval_mode_an_answer_does_not_depend_on_its_batch(name: str) -> None:
    model, x = build(name).eval().double(), images(9).double()
    with torch.no_grad():
        whole, alone = model(x), torch.cat([model(x[i : i + 1]) for i in range(9)])
    assert torch.allclose(whole, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_training_moves_every_parameter(name: str) -> None:
    model, untouched = build(name), build(name)
    data = TensorSet(images(16), torch.arange(16) % CLASSES)
    fit(model, data, Recipe(optimizer="sgd", learning_rate=0.1, epochs=2, batch_size=8), seed=0)
    for (key, new), (_, old) in zip(model.named_parameters(), untouched.named_parameters(), strict=True):
        assert not torch.equal(new, old), key
    assert not model.training


@pytest.mark.parametrize("name", MODELS)
def test_weights_survive_a_safetensors_round_trip(name: str) -> None:
    model = build(name)
    fit(model, TensorSet(images(8), torch.arange(8) % CLASSES), Recipe(epochs=1, batch_size=4), seed=0)
    other = build(name, seed=9)
    other.load_state_dict(safetensors.torch.load(safetensors.torch.save(model.state_dict())))
    assert same_state(model, other)
    assert torch.equal(model(images(5)), other.eval()(images(5)))


def test_resnet18_has_the_published_number_of_parameters() -> None:
    model = make_model("resnet18", {}).build((3, 32, 32), 10, 0)
    assert sum(parameter.numel() for parameter in model.parameters()) == 11_173_962


def test_resnet18_halves_the_image_three_times() -> None:
    model = build("resnet18").eval()
    stages = nn.Sequential(*list(model.children())[:-3])
    with torch.no_grad():
        assert stages(torch.zeros(1, 3, 32, 32)).shape == (1, 32, 4, 4)


def test_an_mlp_has_the_layers_it_was_asked_for() -> None:
    model = make_model("mlp", {"hidden": [7, 6]}).build((2,), 3, 0)
    assert [tuple(p.shape) for p in model.parameters()] == [(7, 2), (7,), (6, 7), (6,), (3, 6), (3,)]
    linear = make_model("mlp", {"hidden": []}).build((2,), 3, 0)
    assert [tuple(p.shape) for p in linear.parameters()] == [(3, 2), (3,)]


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("mlp", {"hidden": [8, 0]}, "hidden is"),
        ("mlp", {"dropout": 1.0}, "dropout is 1.0"),
        ("cnn", {"channels": []}, "channels is"),
        ("cnn", {"channels": [4, 0]}, "channels is"),
        ("cnn", {"dropout": -0.1}, "dropout is -0.1"),
        ("cnn", {"hidden": 0}, "hidden is 0"),
        ("resnet18", {"width": 0}, "width is 0"),
        ("mpl", {}, "did you mean 'mlp'"),
    ],
)
def test_settings_that_cannot_work_are_refused(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_model(name, settings)


@pytest.mark.parametrize("name", ["cnn", "resnet18"])
def test_convolutions_refuse_points_that_are_no_images(name: str) -> None:
    with pytest.raises(BadInput, match="use mlp"):
        make_model(name, SETTINGS[name]).build((2,), CLASSES, 0)


def test_more_poolings_than_the_image_has_pixels_are_refused() -> None:
    with pytest.raises(BadInput, match="poolings are too many"):
        make_model("cnn", {"channels": [2, 2, 2, 2]}).build(IMAGE, CLASSES, 0)


def test_a_single_class_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 2 classes"):
        make_model("mlp", {}).build((2,), 1, 0)

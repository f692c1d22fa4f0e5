"""Layers counted for transfer learning: which there are, in which order, and what belongs to each."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.models.layers import layers_of

CLASSES = 5
MODELS: list[tuple[str, dict[str, object], int, int]] = [
    ("mlp", {"hidden": [12, 9]}, 8, 3),
    ("mlp", {"hidden": [12], "batch_norm": True, "dropout": 0.1}, 8, 2),
    ("mlp", {"hidden": []}, 8, 1),
    ("cnn", {"channels": [4, 6], "hidden": 8, "dropout": 0.1}, 8, 4),
    ("vgg16", {"width": 1}, 32, 14),
    ("vgg16", {"width": 1, "stem": "imagenet", "norm": "none"}, 32, 16),
    ("vgg19", {"width": 1, "norm": "group"}, 32, 17),
    ("vgg19", {"width": 1, "stem": "imagenet"}, 32, 19),
    ("resnet18", {"width": 1}, 8, 10),
    ("resnet50", {"width": 1, "norm": "group"}, 8, 18),
    ("resnet50", {"width": 1, "stem": "imagenet"}, 32, 18),
    ("inception_v3", {"width": 2}, 75, 17),
    ("swin_t", {"width": 2, "depths": [1, 1, 2, 1]}, 32, 10),
]
IDS = [f"{name}-{count}" for name, _, _, count in MODELS]


def build(name: str, settings: dict[str, object], side: int) -> nn.Module:
    return make_model(name, settings).build((3, side, side), CLASSES, 0)


@pytest.mark.parametrize(("name", "settings", "side", "count"), MODELS, ids=IDS)
def test_layers_are_counted_called_in_order_and_share_out_all_state(
    name: str, settings: dict[str, object], side: int, count: int
) -> None:
    model = build(name, settings, side).eval()
    layers = layers_of(model)
    assert len(layers) == count
    parameters = [own for layer in layers for own in layer.parameters]
    assert sorted(parameters) == sorted(own for own, _ in model.named_parameters())
    assert sorted(own for layer in layers for own in layer.state) == sorted(model.state_dict())
    called: list[str] = []
    for layer in layers:
        for own in layer.modules:
            model.get_submodule(own).register_forward_hook(lambda *_, own=own: called.append(own))
    with torch.no_grad():
        model(torch.zeros(2, 3, side, side))
    assert called == [own for layer in layers for own in layer.modules]
    head = model.get_submodule(layers[-1].name)
    assert isinstance(head, nn.Linear) and head.out_features == CLASSES
    assert layers[-1].modules == (layers[-1].name,)


@pytest.mark.parametrize(
    ("name", "settings", "side", "norms"),
    [
        ("mlp", {"hidden": [12, 9], "batch_norm": True}, 8, [1, 1, 0]),
        ("vgg16", {"width": 1}, 32, [1] * 13 + [0]),
        ("resnet50", {"width": 1}, 8, [1, *[0] * 17]),  # those of a block are inside it
    ],
)
def test_a_normalisation_belongs_to_the_layer_before_it(
    name: str, settings: dict[str, object], side: int, norms: list[int]
) -> None:
    model = build(name, settings, side)
    layers = layers_of(model)
    assert [len(layer.modules) - 1 for layer in layers] == norms
    for layer in layers:
        for own in layer.modules[1:]:
            norm, first = model.get_submodule(own), model.get_submodule(layer.name)
            assert isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d)
            assert norm.num_features == len(first.weight)  # type: ignore[arg-type]  # a tensor
            assert {f"{own}.running_mean", f"{own}.running_var"} < set(layer.buffers)


def test_residual_blocks_count_as_one() -> None:
    names = [layer.name for layer in layers_of(build("resnet50", {"width": 1}, 8))]
    blocks = [f"layer{stage}.{block}" for stage, count in ((1, 3), (2, 4), (3, 6), (4, 3)) for block in range(count)]
    assert names == ["conv1", *blocks, "fc"]


def test_models_whose_layers_cannot_be_counted_are_refused() -> None:
    with pytest.raises(BadInput, match="the last one \\(0\\) is not linear"):
        layers_of(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()))
    with pytest.raises(BadInput, match=r"the last one \(none\)"):
        layers_of(nn.Sequential(nn.Flatten()))

    class Token(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.zeros(2))
            self.head = nn.Linear(2, 2)

    with pytest.raises(BadInput, match="parameter token belongs to none"):
        layers_of(Token())

"""Features of reference models: the input of the last linear layer, scaled, projected, one block at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.tmia.features import Features, gaussian_map, last_linear, unit_penultimate

IMAGE = (3, 32, 32)
SETTINGS: dict[str, dict[str, object]] = {
    "mlp": {"hidden": [12, 9], "batch_norm": True, "dropout": 0.3},
    "cnn": {"channels": [4, 6], "hidden": 8, "dropout": 0.3},
    "resnet18": {"width": 2},
    "swin_t": {"width": 4, "depths": [1, 1, 1, 1]},
    "vgg16": {"width": 1},
}


def build(name: str, seed: int = 1) -> nn.Module:
    return make_model(name, SETTINGS[name]).build(IMAGE, 5, seed)


def wide(count: int, width: int = 40) -> list[nn.Module]:
    return [make_model("mlp", {"hidden": [width]}).build((6,), 3, seed).eval() for seed in range(count)]


def points(count: int, shape: tuple[int, ...] = (6,)) -> torch.Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(count))


def without_head(model: nn.Module) -> nn.Module:
    """Return a copy that answers with what its last linear layer would get."""
    cut = copy.deepcopy(model).eval()
    last = last_linear(cut)
    for parent in cut.modules():
        for name, child in parent.named_children():
            if child is last:
                setattr(parent, name, nn.Identity())
    return cut


@pytest.mark.parametrize("name", SETTINGS)
def test_features_are_what_the_output_layer_gets_divided_by_its_norm(name: str) -> None:
    model, x = build(name), torch.rand(7, *IMAGE, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        slow = torch.stack([row / row.norm() for row in without_head(model)(x).double()])
    found = unit_penultimate(model, x, None, chunk=3)
    assert found.shape == (7, last_linear(model).in_features) and last_linear(model).out_features == 5
    assert torch.allclose(found.double(), slow, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_reading_features_changes_no_model_and_no_mode(name: str) -> None:
    model, x = build(name).train(), torch.rand(4, *IMAGE, generator=torch.Generator().manual_seed(4))
    next(model.children()).eval()
    modes = [module.training for module in model.modules()]
    state = copy.deepcopy(model.state_dict())
    first = unit_penultimate(model, x, None)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
    assert torch.equal(first, unit_penultimate(model, x, None)) and not first.requires_grad
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_blocks_stand_side_by_side_and_distances_lie_between_0_and_2() -> None:
    models, x = wide(5), points(30)
    features = Features(models, x, seed=0)
    slow = torch.cat([unit_penultimate(model, x, None) for model in models], dim=1) / math.sqrt(5)
    assert torch.allclose(features.whole(), slow, atol=1e-7)
    assert torch.allclose(features.whole().norm(dim=1), torch.ones(30), atol=1e-5)
    apart = torch.cdist(features.whole(), features.whole())
    assert 0.1 < apart.max() <= 2


def test_a_wide_layer_is_projected_and_squared_distances_keep_their_mean() -> None:
    models, x = wide(60, width=300), points(12)
    exact = torch.pdist(Features(models, x, seed=0, most=300).whole()).square()
    features = Features(models, x, seed=0, most=16)
    assert [block.shape for block in features] == [(12, 16)] * 60
    ratio = torch.pdist(features.whole()).square() / exact
    # one block alone would spread by √(2/16) = .35; 60 independent maps by .046
    assert abs(float(ratio.mean()) - 1) < 0.03 and 0.03 < float(ratio.std()) < 0.07


def test_every_reference_model_has_a_map_of_its_own_that_the_seed_decides() -> None:
    model, x = wide(1)[0], points(9)
    twice = Features([model, model], x, seed=3, most=8)
    assert not torch.allclose(twice.block(0), twice.block(1))
    assert torch.equal(twice.block(1), Features([model, model], x, seed=3, most=8).block(1))
    assert not torch.equal(twice.block(1), Features([model, model], x, seed=4, most=8).block(1))
    assert abs(float(gaussian_map(200, 100, 0).var()) * 100 - 1) < 0.05


def test_the_chunk_changes_rounding_only() -> None:
    x = points(50)
    one, other = (Features(wide(3), x, seed=0, most=8, chunk=chunk).whole() for chunk in (1, 1024))
    assert torch.allclose(one, other, rtol=0, atol=1e-6)


def test_bytes_give_the_features_of_floats() -> None:
    images = torch.randint(0, 256, (5, *IMAGE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    model = build("cnn")
    assert torch.equal(unit_penultimate(model, images, None), unit_penultimate(model, images.float() / 255, None))


def test_a_model_is_asked_for_only_when_its_block_is_read() -> None:
    class Loading(Sequence[nn.Module]):
        loaded: list[int]

        def __init__(self) -> None:
            self.loaded = []

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index):  # type: ignore[no-untyped-def]  # slices are not used
            self.loaded.append(index)
            return wide(1)[0]

    models = Loading()
    blocks = iter(Features(models, points(3), seed=0))
    assert models.loaded == []
    next(blocks), next(blocks)
    assert models.loaded == [0, 1]


def test_a_row_of_zeros_stays_zero() -> None:
    dead = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)).requires_grad_(False)
    dead[0].weight.zero_()
    dead[0].bias.fill_(-1.0)
    assert torch.equal(Features([dead], points(3), seed=0).whole(), torch.zeros(3, 4))


def test_features_that_are_not_finite_name_the_model() -> None:
    models = wide(3)
    with torch.no_grad():
        last_linear(models[1]).weight.fill_(0.0)
        models[1].get_parameter("1.bias")[0] = math.nan
    with pytest.raises(FloatingPointError, match="reference model 1"):
        Features(models, points(3), seed=0).whole()


class Tokens(nn.Module):
    """Hands its last linear layer two rows a point."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.reshape(-1, 2, 3)).mean(1)


@pytest.mark.parametrize(
    ("model", "says"),
    [(nn.Flatten(), "no linear layer"), (Tokens(), "one row a point")],
)
def test_a_model_without_a_last_linear_layer_is_refused(model: nn.Module, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Features([model], points(3), seed=0).whole()
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("change", "says"),
    [({"models": []}, "no reference model"), ({"most": 0}, "most is 0"), ({"chunk": 0}, "chunk is 0")],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Features(**({"models": wide(1), "x": points(2), "seed": 0} | change))

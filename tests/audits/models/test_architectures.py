"""Architectures: equal seeds give equal weights, nothing global is touched, wrong settings are refused."""

from __future__ import annotations

import copy

import pytest
import safetensors.torch
import torch
import torchvision
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from orchestrator.engine.run.models import pack_weights
from tests.cases.families import as_one, thinned

IMAGE = (3, 32, 32)
CLASSES = 5
SETTINGS: dict[str, dict[str, object]] = {
    "mlp": {"hidden": [12], "batch_norm": True, "dropout": 0.1},
    "cnn": {"channels": [4, 6], "hidden": 8, "dropout": 0.1},
    "resnet18": {"width": 4},
    "swin_t": {"width": 8, "depths": [1, 1, 2, 1]},
    "vgg16": {"width": 2},
}


def build(name: str, seed: int = 1) -> nn.Module:
    return make_model(name, SETTINGS[name]).build(IMAGE, CLASSES, seed)


def images(count: int, shape: tuple[int, ...] = IMAGE) -> torch.Tensor:
    return torch.rand(count, *shape, generator=torch.Generator().manual_seed(count))


def same_state(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_convolutions_lie_channels_last_and_stay_so_when_weights_are_loaded() -> None:
    model, other = (make_model("resnet18", {"width": 8}).build(IMAGE, CLASSES, seed) for seed in (0, 1))
    model.load_state_dict(safetensors.torch.load(pack_weights(other)))
    kernels = [module.weight for module in model.modules() if isinstance(module, nn.Conv2d)]
    assert all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


@pytest.mark.parametrize(("width", "plain"), [(4, True), (7, True), (8, False)])
def test_shortcuts_of_few_channels_whose_gradient_corrupts_memory_channels_last_keep_the_plain_layout(
    width: int, plain: bool
) -> None:
    model = make_model("resnet18", {"width": width}).build(IMAGE, CLASSES, 0)
    kernels = [module.weight for module in model.modules() if isinstance(module, nn.Conv2d)]
    assert all(kernel.is_contiguous() for kernel in kernels) == plain


LAYOUTS: list[tuple[str, dict[str, object], int]] = [
    ("cnn", {}, 32),
    ("resnet18", {"norm": "batch"}, 8),  # images of 1×1 in its last stage
    ("resnet18", {"norm": "group"}, 8),
    ("swin_t", {}, 32),
    ("vgg16", {"norm": "batch"}, 32),
    ("vgg16", {"norm": "group"}, 32),
    ("vgg16", {"norm": "none"}, 32),
]


@pytest.mark.parametrize(
    ("train", "name", "settings", "side"),
    thinned(
        ((train, *each) for train in (True, False) for each in LAYOUTS),
        [*((True, *each) for each in LAYOUTS[:5]), (False, *LAYOUTS[1]), (False, *LAYOUTS[5])],
    ),
)
def test_the_layout_in_memory_changes_neither_answers_nor_gradients(
    train: bool, name: str, settings: dict[str, object], side: int
) -> None:
    chosen = {field: value for field, value in SETTINGS[name].items() if field != "dropout"} | settings
    model = make_model(name, chosen).build((3, side, side), CLASSES, 0).double().train(train)
    plain = copy.deepcopy(model)
    for weight in plain.parameters():
        weight.data = weight.data.clone(memory_format=torch.contiguous_format)
    found = []
    for each in (model, plain):
        torch.manual_seed(0)
        x = images(6)[:, :, :side, :side].double().requires_grad_(True)
        output = each(x)
        nn.functional.cross_entropy(output, torch.arange(6) % CLASSES).backward()
        found.append([output.detach(), x.grad, *(weight.grad for weight in each.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


def test_resnet18_has_the_published_number_of_parameters() -> None:
    model = make_model("resnet18", {}).build((3, 32, 32), 10, 0)
    assert sum(parameter.numel() for parameter in model.parameters()) == 11_173_962


def test_resnet18_halves_the_image_three_times() -> None:
    model = build("resnet18").eval()
    stages = nn.Sequential(*list(model.children())[:-3])
    with torch.no_grad():
        assert stages(torch.zeros(1, 3, 32, 32)).shape == (1, 32, 4, 4)


def test_resnet18_for_large_images_is_torchvisions() -> None:
    theirs = torchvision.models.resnet18(num_classes=7).eval()
    with torch.device("meta"):
        ours = make_model("resnet18", {"stem": "imagenet"}).build((3, 64, 64), 7, 0).eval()
    weights = dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True))  # in one order, under our names
    ours.to_empty(device="cpu").load_state_dict(weights)
    with torch.no_grad():
        assert torch.allclose(ours(images(2, (3, 64, 64))), theirs(images(2, (3, 64, 64))), rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_vgg16_has_the_layers_and_the_initial_distribution_of_torchvisions(norm: str) -> None:
    ours = make_model("vgg16", {"norm": norm, "width": 32}).build((3, 32, 32), 10, 0)
    half = [each if each == "M" else int(each) // 2 for each in torchvision.models.vgg.cfgs["D"]]
    with torch.device("meta"):  # weights that are replaced at once
        theirs = torchvision.models.vgg.make_layers(half, batch_norm=norm == "batch")
    assert {f"features.{key}": value.shape for key, value in theirs.state_dict().items()} == {
        key: value.shape for key, value in ours.state_dict().items() if key.startswith("features.")
    }
    theirs.to_empty(device="cpu").load_state_dict(
        {
            key.removeprefix("features."): value
            for key, value in ours.state_dict().items()
            if key.startswith("features.")
        }
    )
    with torch.no_grad():
        pooled = theirs.eval()(images(2)).flatten(1)
        assert torch.allclose(ours.eval().classifier(pooled), ours(images(2)), rtol=0, atol=1e-6)
    for layer in ours.modules():
        if isinstance(layer, nn.Conv2d):
            assert layer.bias is not None and not layer.bias.any()
            assert abs(layer.weight.std().item() * (9 * layer.out_channels / 2) ** 0.5 - 1) < 0.06


def test_vgg16_for_large_images_has_the_published_classifier() -> None:
    shapes = {
        key: tuple(value.shape)
        for key, value in make_model("vgg16", {"width": 8, "stem": "imagenet"})
        .build((3, 224, 224), 9, 0)
        .state_dict()
        .items()
    }
    units = {key: shape for key, shape in shapes.items() if key.startswith("classifier") and "weight" in key}
    assert list(units.values()) == [(512, 64 * 49), (512, 512), (9, 512)]  # at width 64: 4096 from 512 × 7 × 7


def test_vgg16_drops_half_of_the_large_classifiers_units_unless_told_otherwise() -> None:
    def rates(**settings: object) -> list[float]:
        model = make_model("vgg16", {"width": 1, **settings}).build(IMAGE, CLASSES, 0)
        return [layer.p for layer in model.modules() if isinstance(layer, nn.Dropout)]

    assert rates(stem="imagenet") == [0.5, 0.5]
    assert rates(stem="imagenet", dropout=0.0) == [0.0, 0.0]
    assert rates() == [0.0]
    assert rates(dropout=0.2) == [0.2]


def test_swin_t_for_large_images_is_torchvisions() -> None:
    with torch.device("meta"):  # shapes without weights
        theirs = torchvision.models.swin_t(num_classes=10).state_dict()
        ours = make_model("swin_t", {"stem": "imagenet"}).build((3, 224, 224), 10, 0).state_dict()
    assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}


def test_swin_t_cuts_small_images_into_16_by_16_patches() -> None:
    model = build("swin_t").eval()
    assert isinstance(model, torchvision.models.SwinTransformer)
    with torch.no_grad():
        grids = [images(1)]
        for part in model.features:
            grids.append(part(grids[-1]))
    assert [tuple(grid.shape[1:3]) for grid in grids[1::2]] == [(16, 16), (8, 8), (4, 4), (2, 2)]


STEMS = [
    (name, stem, channels)
    for name in ("resnet18", "swin_t", "vgg16")
    for stem in ("cifar", "imagenet")
    for channels in (1, 3)
]


@pytest.mark.parametrize(
    ("name", "stem", "channels"), thinned(STEMS, [each for each in STEMS if (each[1] == "cifar") == (each[2] == 1)])
)
def test_every_stem_reads_grey_and_coloured_images(name: str, stem: str, channels: int) -> None:
    settings = {**SETTINGS[name], "width": 1, "stem": stem}
    model = make_model(name, settings).build((channels, 32, 32), CLASSES, 0).eval()
    x = images(2, (channels, 32, 32))
    assert model(x).shape == (2, CLASSES)
    assert torch.equal(model(x), model(x))


@pytest.mark.parametrize("name", ["resnet18", "vgg16"])
def test_group_norm_replaces_every_batch_norm(name: str) -> None:
    layers = list(make_model(name, {"width": 4, "norm": "group"}).build(IMAGE, CLASSES, 0).modules())
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in layers)
    groups = [layer for layer in layers if isinstance(layer, nn.GroupNorm)]
    assert len(groups) == sum(isinstance(layer, nn.Conv2d) for layer in layers)
    assert {layer.num_groups for layer in groups} == {4, 8, 16, 32}


def test_an_mlp_has_the_layers_it_was_asked_for() -> None:
    model = make_model("mlp", {"hidden": [7, 6]}).build((2,), 3, 0)
    assert [tuple(p.shape) for p in model.parameters()] == [(7, 2), (7,), (6, 7), (6,), (3, 6), (3,)]
    linear = make_model("mlp", {"hidden": []}).build((2,), 3, 0)
    assert [tuple(p.shape) for p in linear.parameters()] == [(3, 2), (3,)]


@as_one(
    "name, settings, says",
    [
        ("mlp", {"hidden": [8, 0]}, "hidden is"),
        ("mlp", {"dropout": 1.0}, "dropout is 1.0"),
        ("cnn", {"channels": []}, "channels is"),
        ("cnn", {"channels": [4, 0]}, "channels is"),
        ("cnn", {"dropout": -0.1}, "dropout is -0.1"),
        ("cnn", {"activation": "gelu"}, "activation is 'gelu'; allowed: relu, tanh, sigmoid"),
        ("cnn", {"hidden": 0}, "hidden is 0"),
        ("resnet18", {"width": 0}, "width is 0"),
        ("resnet18", {"stem": "large"}, "stem is 'large'; allowed: cifar, imagenet"),
        ("resnet18", {"norm": "none"}, "norm is 'none'; allowed: batch, group"),
        ("vgg16", {"width": 0}, "width is 0"),
        ("vgg16", {"norm": "layer"}, "norm is 'layer'"),
        ("vgg16", {"stem": ""}, "stem is ''"),
        ("vgg16", {"dropout": 1.0}, "dropout is 1.0"),
        ("swin_t", {"width": 40}, "width is 40; allowed: 1 to 32, or a multiple of 32"),
        ("swin_t", {"depths": [2, 2, 6]}, "depths is"),
        ("swin_t", {"depths": [2, 2, 0, 2]}, "depths is"),
        ("swin_t", {"stem": "tiny"}, "stem is 'tiny'"),
        ("swin_t", {"stochastic_depth": 1.0}, "stochastic_depth is 1.0"),
        ("mpl", {}, "did you mean 'mlp'"),
    ],
)
def test_settings_that_cannot_work_are_refused(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_model(name, settings)


@as_one("name", [name for name in SETTINGS if name != "mlp"])
def test_convolutions_refuse_points_that_are_no_images(name: str) -> None:
    with pytest.raises(BadInput, match="use mlp"):
        make_model(name, SETTINGS[name]).build((2,), CLASSES, 0)


def test_more_poolings_than_the_image_has_pixels_are_refused() -> None:
    with pytest.raises(BadInput, match="poolings are too many"):
        make_model("cnn", {"channels": [2, 2, 2, 2]}).build((3, 8, 8), CLASSES, 0)


@pytest.mark.parametrize(
    ("name", "stem", "side", "says"),
    [
        ("resnet18", "imagenet", 28, "32×32 or more, or use stem: cifar"),
        ("vgg16", "cifar", 28, "cannot read 28×28; give images of 32×32 or more"),
        ("vgg16", "imagenet", 31, "cannot read 31×31"),
        ("swin_t", "cifar", 8, "sides of 10 or more that 2 divides"),
        ("swin_t", "cifar", 33, "cannot read 33×33"),
        ("swin_t", "imagenet", 16, "sides of 20 or more that 4 divides"),
    ],
)
def test_images_that_are_too_small_are_refused_with_what_would_do(name: str, stem: str, side: int, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        make_model(name, {**SETTINGS[name], "stem": stem}).build((3, side, side), CLASSES, 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("stem", "side"), [("cifar", 10), ("cifar", 14), ("cifar", 28), ("imagenet", 20)])
def test_swin_t_reads_the_smallest_images_it_promises(stem: str, side: int) -> None:
    model = make_model("swin_t", {**SETTINGS["swin_t"], "stem": stem}).build((1, side, side), CLASSES, 0).eval()
    assert model(images(2, (1, side, side))).isfinite().all()

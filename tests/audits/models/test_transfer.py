"""The architectures of the transfer audit: vgg19, resnet50 and inception_v3 against torchvision's."""

from __future__ import annotations

import copy

import pytest
import torch
import torchvision
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.models.resnet50 import Bottleneck
from audits.training.transfer import TORCHVISION_INPUTS, standardised
from tests.cases.families import as_one, thinned

CLASSES = 5
SETTINGS: dict[str, dict[str, object]] = {"vgg19": {"width": 2}, "resnet50": {"width": 2}, "inception_v3": {"width": 2}}
SIDES = {"vgg19": 32, "resnet50": 16, "inception_v3": 75}


def build(name: str, seed: int = 1, **settings: object) -> nn.Module:
    side = SIDES[name]
    return make_model(name, {**SETTINGS[name], **settings}).build((3, side, side), CLASSES, seed)


def images(count: int, side: int, channels: int = 3) -> torch.Tensor:
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(count))


def settled(model: nn.Module, x: torch.Tensor) -> nn.Module:
    """Return ``model`` in eval mode, its BatchNorm with the statistics of ``x``, as after training on it."""
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in norms:
        layer.momentum = 1.0
    with torch.no_grad():
        model.train()(x)
    return model.eval()


def same_state(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


LAYOUTS: list[tuple[str, dict[str, object]]] = [
    ("vgg19", {"norm": "batch"}),
    ("vgg19", {"norm": "group"}),
    ("resnet50", {"norm": "batch"}),
    ("resnet50", {"norm": "group"}),
    ("inception_v3", {"dropout": 0.0}),
]
SHORT = [(*LAYOUTS[0], True), (*LAYOUTS[3], True)]


@pytest.mark.parametrize(
    ("name", "settings", "train"), thinned(((*each, train) for train in (True, False) for each in LAYOUTS), SHORT)
)
def test_the_layout_in_memory_changes_neither_answers_nor_gradients(
    name: str, settings: dict[str, object], train: bool
) -> None:
    model = settled(build(name, **settings).double(), images(4, SIDES[name]).double()).train(train)
    plain = copy.deepcopy(model)
    for weight in plain.parameters():
        weight.data = weight.data.clone(memory_format=torch.contiguous_format)
    found = []
    for each in (model, plain):
        x = images(4, SIDES[name]).double().requires_grad_(True)
        output = each(x)
        nn.functional.cross_entropy(output, torch.arange(4) % CLASSES).backward()
        found.append([output.detach(), x.grad, *(weight.grad for weight in each.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


TORCHVISIONS: list[tuple[str, dict[str, object], str, int]] = [
    ("vgg16", {"norm": "none"}, "vgg16", 138_357_544),
    ("vgg19", {"norm": "none"}, "vgg19", 143_667_240),
    ("vgg19", {"norm": "batch"}, "vgg19_bn", 143_678_248),
    ("resnet50", {}, "resnet50", 25_557_032),
    ("inception_v3", {}, "inception_v3", 23_834_568),
]


@pytest.mark.parametrize(("name", "settings", "builder", "count"), TORCHVISIONS, ids=[row[2] for row in TORCHVISIONS])
def test_full_size_models_have_names_shapes_and_number_of_torchvisions_weights(
    name: str, settings: dict[str, object], builder: str, count: int
) -> None:
    stem = {} if name == "inception_v3" else {"stem": "imagenet"}
    theirs_only = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    with torch.device("meta"):  # shapes without weights
        ours = make_model(name, {**settings, **stem}).build((3, 299, 299), 1000, 0)
        theirs = getattr(torchvision.models, builder)(**theirs_only)
    assert {key: value.shape for key, value in ours.state_dict().items()} == {
        key: value.shape for key, value in theirs.state_dict().items()
    }
    assert sum(parameter.numel() for parameter in ours.parameters()) == count


@pytest.mark.parametrize(("width", "stride"), [(6, 1), (6, 2), (12, 1)])
def test_a_bottleneck_is_torchvisions(width: int, stride: int) -> None:
    ours = Bottleneck(width, 3, stride, "batch").double()
    short = ours.downsample if stride > 1 or width != 12 else None
    theirs = torchvision.models.resnet.Bottleneck(width, 3, stride, copy.deepcopy(short)).double()
    x = torch.randn(4, width, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    theirs.load_state_dict(settled(ours, x).state_dict())
    assert torch.allclose(ours(x), theirs.eval()(x), rtol=1e-9, atol=1e-9)


@pytest.mark.long
def test_resnet50_for_large_images_answers_as_torchvisions() -> None:
    x = images(3, 32).double()
    with torch.device("meta"):
        theirs = torchvision.models.resnet50(num_classes=7).double()
    ours = make_model("resnet50", {"stem": "imagenet"}).build((3, 32, 32), 7, 0).double()
    drawn = ours.state_dict()["layer3.2.conv3.weight"]
    assert abs(float(drawn.std()) * (len(drawn) / 2) ** 0.5 - 1) < 0.01  # as theirs; 262 144 draws: s.e. .001
    theirs.to_empty(device="cpu").load_state_dict(settled(ours, x).state_dict())
    theirs.eval()
    with torch.no_grad():
        assert torch.allclose(ours(x), theirs(x), rtol=1e-9, atol=1e-9)
        assert float(theirs(x).std(0).min()) > 1e-2


def test_inception_v3_reads_standardised_images_as_torchvisions_which_transforms_them() -> None:
    ours = make_model("inception_v3", {"width": 4}).build((3, 80, 96), 7, 0).double()
    theirs = copy.deepcopy(ours)
    theirs.transform_input = True  # an attribute of torchvision's class
    x = torch.rand(3, 3, 80, 96, generator=torch.Generator().manual_seed(0)).double()
    prepared = torchvision.transforms.functional.normalize(x, *map(list, TORCHVISION_INPUTS["resnet50"]))
    ours.load_state_dict(settled(theirs, prepared).state_dict())
    ours.eval()
    with torch.no_grad():
        wanted = theirs(prepared)
        assert not torch.allclose(ours(x), wanted, rtol=1e-2, atol=1e-2)
        assert torch.allclose(standardised(ours, *TORCHVISION_INPUTS["inception_v3"])(x), wanted, rtol=1e-8, atol=1e-8)


def test_vgg19_has_torchvisions_features() -> None:
    ours = build("vgg19", width=8, norm="none").eval()
    with torch.device("meta"):
        cuts = [each if each == "M" else int(each) // 8 for each in torchvision.models.vgg.cfgs["E"]]
        theirs = torchvision.models.vgg.make_layers(cuts).eval()
    names = {key.removeprefix("features."): value for key, value in ours.state_dict().items() if "features" in key}
    theirs.to_empty(device="cpu").load_state_dict(names)
    with torch.no_grad():
        answers = ours(images(2, 32))
        assert torch.allclose(ours.classifier(theirs(images(2, 32)).flatten(1)), answers, atol=1e-6)
        assert float(answers.std(0).min()) > 1e-5


def test_resnet50_halves_small_images_three_times_and_has_sixteen_bottlenecks() -> None:
    model = build("resnet50").eval()
    stages = nn.Sequential(*list(model.children())[:-3])
    with torch.no_grad():
        assert stages(torch.zeros(1, 3, 32, 32)).shape == (1, 64, 4, 4)
    assert [len(stage) for name, stage in model.named_children() if name.startswith("layer")] == [3, 4, 6, 3]


@pytest.mark.long
@pytest.mark.parametrize("width", [2, 4, 16])
def test_a_narrow_inception_has_all_widths_scaled(width: int) -> None:
    with torch.device("meta"):
        full = make_model("inception_v3", {}).build((3, 75, 75), CLASSES, 0).state_dict()
        narrow = make_model("inception_v3", {"width": width}).build((3, 75, 75), CLASSES, 0).state_dict()
    for key, value in narrow.items():
        wanted = list(full[key].shape)
        for axis in range(min(2, len(wanted))):
            kept = wanted[axis] == (CLASSES if axis == 0 and key.startswith("fc.") else 3 if axis == 1 else 0)
            wanted[axis] = wanted[axis] if kept else wanted[axis] * width // 32
        assert list(value.shape) == wanted, key


STEMS = [
    *((name, stem, count) for name in ("resnet50", "vgg19") for stem in ("cifar", "imagenet") for count in (1, 3)),
    *(("inception_v3", None, count) for count in (1, 4)),
]


@pytest.mark.parametrize(
    ("name", "stem", "channels"), thinned(STEMS, [each for each in STEMS if (each[1] == "imagenet") == (each[2] == 3)])
)
def test_every_stem_reads_the_smallest_images_it_promises(name: str, stem: str | None, channels: int) -> None:
    side = {"inception_v3": 75, "vgg19": 32, "resnet50": 32 if stem == "imagenet" else 8}[name]
    settings = SETTINGS[name] | ({"stem": stem} if stem else {})
    model = make_model(name, settings).build((channels, side, side), CLASSES, 0).eval()
    found = model(images(2, side, channels))
    assert found.shape == (2, CLASSES) and bool(found.isfinite().all())


@pytest.mark.parametrize("name", ["resnet50", "vgg19"])
def test_group_norm_replaces_every_batch_norm(name: str) -> None:
    layers = list(build(name, norm="group").modules())
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in layers)
    assert sum(isinstance(layer, nn.GroupNorm) for layer in layers) == sum(isinstance(x, nn.Conv2d) for x in layers)


def test_inception_starts_he_normal_by_fan_out() -> None:
    kernel = build("inception_v3", width=8).get_parameter("Mixed_7b.branch3x3_1.conv.weight")
    assert kernel.shape == (96, 320, 1, 1)
    assert abs(float(kernel.detach().std()) * (96 / 2) ** 0.5 - 1) < 0.03  # 30 720 draws: s.e. .004


def test_dropout_stands_before_the_output_of_inception() -> None:
    rates = [
        [one.p for one in build("inception_v3", dropout=p).modules() if isinstance(one, nn.Dropout)] for p in (0.0, 0.3)
    ]
    assert rates == [[0.0], [0.3]]


@as_one(
    "name, settings, says",
    [
        ("vgg19", {"width": 0}, "width is 0"),
        ("vgg19", {"norm": "layer"}, "norm is 'layer'"),
        ("resnet50", {"stem": "large"}, "stem is 'large'; allowed: cifar, imagenet"),
        ("resnet50", {"norm": "none"}, "norm is 'none'; allowed: batch, group"),
        ("inception_v3", {"width": 3}, "width is 3; allowed: multiples of 2"),
        ("inception_v3", {"width": 0}, "width is 0"),
        ("inception_v3", {"dropout": 1.0}, "dropout is 1.0"),
        ("resnet5", {}, "did you mean 'resnet50'"),
    ],
)
def test_settings_that_cannot_work_are_refused(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_model(name, settings)


@as_one(
    "name, settings, shape, says",
    [
        ("vgg19", {}, (3, 31, 40), "vgg19 halves images five times and cannot read 31×40"),
        ("resnet50", {"stem": "imagenet"}, (3, 28, 28), "32×32 or more, or use stem: cifar"),
        ("inception_v3", {}, (3, 75, 74), r"cannot read 75×74 images; give images of 75×75 or more \(\?size=N"),
        ("inception_v3", {}, (2,), "use mlp"),
        ("resnet50", {}, (2,), "use mlp"),
        ("vgg19", {}, (2,), "use mlp"),
    ],
)
def test_points_that_cannot_be_read_are_refused(
    name: str, settings: dict[str, object], shape: tuple[int, ...], says: str
) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        make_model(name, {**SETTINGS[name], **settings}).build(shape, CLASSES, 0)
    assert "\n" not in str(caught.value)

"""Students of a teacher: frozen layers stay bit for bit, the rest trains as a model of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.models.layers import layers_of
from audits.seeds import derive_seed
from audits.training.fit import fit
from audits.training.loop import logits, make_optimizer, train_mode
from audits.training.recipe import Recipe
from audits.training.transfer import TORCHVISION_INPUTS, Build, freeze, standardised, student_of, train_student
from tests.cases.families import as_one, thinned

OLD, NEW = 4, 3  # classes of teacher and student
RECIPE = Recipe(optimizer="sgd", learning_rate=0.05, epochs=2, batch_size=8, weight_decay=0.1, momentum=0.9)
MODELS: dict[str, tuple[dict[str, object], int]] = {
    "mlp": ({"hidden": [9, 8], "batch_norm": True, "dropout": 0.2}, 6),
    "cnn": ({"channels": [3, 4], "hidden": 5}, 8),
    "vgg16": ({"width": 1, "stem": "imagenet"}, 32),
    "resnet18": ({"width": 2}, 8),
    "resnet50": ({"width": 1}, 8),
    "inception_v3": ({"width": 2}, 75),
    "swin_t": ({"width": 2, "depths": [1, 1, 2, 1]}, 32),
}
FROZEN = [
    ("mlp", 1),
    ("mlp", 2),
    ("cnn", 2),
    ("vgg16", 13),
    ("resnet18", 4),
    ("resnet50", 17),
    ("inception_v3", 9),
    ("swin_t", 5),
]


SHORT = ("mlp", "cnn", "vgg16", "resnet18")
"""Models that stand for the others."""


def builder(name: str, side: int | None = None, **settings: object) -> Build:
    usual, usual_side = MODELS[name]
    size = side or usual_side
    return lambda classes, seed: make_model(name, {**usual, **settings}).build((1, size, size), classes, seed)


def points(side: int, classes: int, count: int = 17) -> TensorSet:
    x = torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(side))
    return TensorSet(x, torch.arange(count) % classes)


def taught(name: str) -> nn.Module:
    """Return a trained teacher, so that running statistics are not those of a fresh model."""
    return fit(builder(name)(OLD, 1), points(MODELS[name][1], OLD), replace(RECIPE, epochs=1), seed=0)


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


# The student


@pytest.mark.parametrize(
    ("name", "n_frozen", "optimizer"),
    [
        *(pytest.param(*case, "sgd", marks=() if case[0] in SHORT else pytest.mark.long) for case in FROZEN),
        *(pytest.param(*case, "adamw", marks=() if case[0] == "mlp" else pytest.mark.long) for case in FROZEN),
    ],
)
def test_frozen_layers_stay_bit_for_bit_and_all_others_train(name: str, n_frozen: int, optimizer: str) -> None:
    teacher = taught(name)
    before = state(teacher)
    data = points(MODELS[name][1], NEW)
    student = train_student(teacher, builder(name), NEW, n_frozen, data, replace(RECIPE, optimizer=optimizer), seed=5)
    after, layers = student.state_dict(), layers_of(student)
    for layer in layers[:n_frozen]:
        for own in layer.state:
            assert torch.equal(after[own], before[own]), own
    for layer in layers[n_frozen:]:
        for own in layer.parameters:
            assert after[own].shape != before[own].shape or not torch.equal(after[own], before[own]), own
        for own in layer.buffers:
            assert torch.equal(after[own], before[own]) == ("relative_position" in own), own
    assert not any(module.training for module in student.modules())
    assert logits(student, data.x).shape == (17, NEW)
    for own, value in teacher.state_dict().items():
        assert torch.equal(value, before[own])  # the teacher itself is not touched


def test_a_feature_extractor_trains_as_the_rest_of_the_model_on_its_features() -> None:
    """Slow form: the frozen layers' outputs as data of a smaller model, which the same loop trains."""
    build: Build = lambda classes, seed: (  # noqa: E731  # a function of two lines would hide the shape
        make_model("mlp", {"hidden": [9, 8, 7], "batch_norm": True}).build((6,), classes, seed).double()
    )
    x = torch.randn(21, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    data = TensorSet(x, torch.arange(21) % NEW)
    teacher = fit(build(OLD, 1), TensorSet(x, torch.arange(21) % OLD), RECIPE, seed=0)
    student = student_of(teacher, build, NEW, 2, seed=derive_seed(5, "init"))
    assert isinstance(student, nn.Sequential)
    with torch.no_grad():
        features = student.eval()[:7](x)  # Flatten, then twice Linear, ReLU, BatchNorm
    rest = fit(student[7:], TensorSet(features, data.y), RECIPE, seed=derive_seed(5, "fit"))
    found = train_student(teacher, build, NEW, 2, data, RECIPE, seed=5)
    assert torch.allclose(found(x), rest(features), rtol=0, atol=1e-12)


def test_fine_tuning_freezes_nothing_and_starts_from_the_teacher() -> None:
    teacher = taught("resnet18")
    student = student_of(teacher, builder("resnet18"), NEW, 0, seed=5)
    assert all(weight.requires_grad for weight in student.parameters())
    still = train_student(teacher, builder("resnet18"), NEW, 0, points(8, NEW), replace(RECIPE, epochs=0), seed=5)
    for layer in layers_of(student)[:-1]:
        for own in layer.state:
            assert torch.equal(still.state_dict()[own], teacher.state_dict()[own])


@pytest.mark.parametrize("classes", [NEW, OLD])
def test_the_head_is_fresh_and_depends_on_the_seed(classes: int) -> None:
    teacher = taught("cnn")
    one, same, other = (student_of(teacher, builder("cnn"), classes, 1, seed) for seed in (5, 5, 6))
    head = layers_of(one)[-1].name
    weights = [model.get_parameter(f"{head}.weight") for model in (one, same, other, teacher)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert weights[0].shape != weights[3].shape or not torch.equal(weights[0], weights[3])


def test_equal_seeds_give_equal_students_and_other_seeds_others() -> None:
    teacher = taught("mlp")
    first, again, other = (
        state(train_student(teacher, builder("mlp"), NEW, 1, points(6, NEW), RECIPE, seed)) for seed in (5, 5, 6)
    )
    assert all(torch.equal(first[own], again[own]) for own in first)
    assert any(not torch.equal(first[own], other[own]) for own in first)


def test_frozen_batch_norm_keeps_its_statistics_in_the_loop_and_no_other_does() -> None:
    model = freeze(taught("resnet18"), 3)
    train_mode(model)
    frozen = [own for layer in layers_of(model)[:3] for own in layer.parameters]
    for name, module in model.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.training == (f"{name}.weight" not in frozen), name
    trained = {id(weight) for group in make_optimizer(model, RECIPE).param_groups for weight in group["params"]}
    assert trained == {id(weight) for name, weight in model.named_parameters() if name not in frozen}
    train_mode(freeze(model, 0))
    assert all(module.training for module in model.modules())


def test_a_private_student_keeps_its_frozen_layers() -> None:
    teacher = taught("cnn")
    recipe = replace(RECIPE, noise_multiplier=0.5, max_grad_norm=1.0)
    student = train_student(teacher, builder("cnn"), NEW, 2, points(8, NEW), recipe, seed=5)
    layers = layers_of(student)
    for number, layer in enumerate(layers[:-1]):
        for own in layer.parameters:
            assert torch.equal(student.get_parameter(own), teacher.get_parameter(own)) == (number < 2), own


@pytest.mark.parametrize(
    ("name", "side"),
    thinned([("vgg16", 40), ("resnet18", 12), ("inception_v3", 80)], [("vgg16", 40), ("resnet18", 12)]),
)
def test_models_that_pool_adaptively_take_images_of_another_size(name: str, side: int) -> None:
    data = points(side, NEW, 6)
    student = train_student(taught(name), builder(name, side), NEW, 1, data, replace(RECIPE, epochs=1), seed=5)
    assert logits(student, data.x).shape == (6, NEW)


def test_a_student_may_drop_units_that_its_teacher_did_not() -> None:
    build = builder("mlp", dropout=0.0)
    teacher = build(OLD, 1)
    student = student_of(teacher, builder("mlp", dropout=0.5), NEW, 2, seed=5).eval()
    assert [name for name, _ in student.named_parameters()] != [name for name, _ in teacher.named_parameters()]
    for ours, theirs in zip(layers_of(student)[:-1], layers_of(teacher)[:-1], strict=True):
        for own, old in zip(ours.state, theirs.state, strict=True):
            assert torch.equal(student.state_dict()[own], teacher.state_dict()[old])
    rates = [layer.p for layer in student.modules() if isinstance(layer, nn.Dropout)]
    assert rates == [0.5, 0.5]


@as_one(
    "teacher, student, n_frozen, says",
    [
        (builder("mlp"), builder("mlp"), 3, r"n_frozen is 3; allowed: 0 \(fine-tune everything\) to 2"),
        (builder("cnn"), builder("cnn"), -1, "n_frozen is -1"),
        (builder("mlp"), builder("mlp", side=5), 1, r"shape \(9, 36\) in the teacher and \(9, 25\).*\?size=N scales"),
        (builder("cnn"), builder("cnn", side=12), 1, r"shape \(5, 16\) in the teacher and \(5, 36\).*of equal size"),
        (builder("mlp"), builder("mlp", hidden=[9]), 1, "the teacher has 3 layers, the student 2; give both the same"),
        (builder("mlp"), builder("mlp", batch_norm=False), 1, "7 tensors in the teacher and 2 in the student"),
        (builder("resnet18"), builder("resnet18", width=3), 1, "same model.name and model.settings"),
        (builder("mlp", hidden=[]), builder("mlp", hidden=[]), 0, "a head alone"),
    ],
)
def test_transfers_that_cannot_work_are_refused(teacher: Build, student: Build, n_frozen: int, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        student_of(teacher(OLD, 0), student, NEW, n_frozen, seed=1)
    assert "\n" not in str(caught.value)


def test_images_with_other_channels_are_refused() -> None:
    coloured = make_model("resnet18", {"width": 2}).build((3, 8, 8), OLD, 0)
    with pytest.raises(
        BadInput, match=r"shape \(2, 3, 3, 3\) in the teacher and \(2, 1, 3, 3\).*equally many channels"
    ):
        student_of(coloured, builder("resnet18"), NEW, 1, seed=1)


# Standardised inputs


def test_a_standardised_model_reads_images_as_torchvisions_weights_expect() -> None:
    mean, std = TORCHVISION_INPUTS["vgg16"]
    build: Build = lambda classes, seed: make_model("resnet18", {"width": 2}).build((3, 8, 8), classes, seed)  # noqa: E731  # as above
    plain, model = build(OLD, 1).eval(), standardised(build(OLD, 1), mean, std).eval()
    x = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    slow = torch.stack([(x[:, channel] - mean[channel]) / std[channel] for channel in range(3)], dim=1)
    assert torch.allclose(model(x), plain(slow), rtol=0, atol=1e-6)
    assert list(model.state_dict()) == list(plain.state_dict())
    student = student_of(model, lambda classes, seed: standardised(build(classes, seed), mean, std), OLD, 1, seed=2)
    head = layers_of(student)[-1].name
    with torch.no_grad():
        student.get_parameter(f"{head}.weight").copy_(model.get_parameter(f"{head}.weight"))
        student.get_parameter(f"{head}.bias").copy_(model.get_parameter(f"{head}.bias"))
    assert torch.allclose(student.eval()(x), model(x), rtol=0, atol=1e-6)

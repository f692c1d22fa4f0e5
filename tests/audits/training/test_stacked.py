"""Models that are trained at once are those that are trained one by one; in float64, but for rounding."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.training import fit_stacked, stacked
from audits.training.fit import fit
from audits.training.recipe import Recipe
from benchmarks.pretended import Counts, pretended
from tests.cases.families import as_one

MODELS, POINTS, CLASSES, SHAPE = 4, 26, 3, (2, 6, 6)
PLAIN = Recipe(epochs=3, batch_size=8, learning_rate=0.01, augment_shift=1, flip=True)
RECIPES = {
    "adamw": PLAIN,
    "adam": replace(PLAIN, optimizer="adam", schedule="cosine"),
    "sgd": replace(PLAIN, optimizer="sgd", clip_norm=0.5),
    "smoothed": replace(PLAIN, label_smoothing=0.2, augment_shift=0),
    "a last batch of one point": replace(PLAIN, batch_size=5),
}
KINDS = {
    "mlp": ("mlp", {"hidden": [7], "batch_norm": True}),
    "cnn": ("cnn", {"channels": [4], "hidden": 6}),
    "resnet18": ("resnet18", {"width": 8}),
    "dropping": ("mlp", {"hidden": [7], "dropout": 0.1}),
}


@pytest.fixture
def counts() -> Iterator[Counts]:
    with pretended() as found:
        yield found


def networks(kind: str = "mlp", count: int = MODELS) -> list[nn.Module]:
    name, settings = KINDS[kind]
    return [make_model(name, settings).build(SHAPE, CLASSES, seed).double() for seed in range(count)]


def sets(points: int = POINTS, count: int = MODELS) -> list[TensorSet]:
    generator = torch.Generator().manual_seed(9)
    return [
        TensorSet(
            torch.rand(points, *SHAPE, generator=generator, dtype=torch.float64),
            torch.randint(CLASSES, (points,), generator=generator),
        )
        for _ in range(count)
    ]


def same(found: Sequence[nn.Module], wanted: Sequence[nn.Module]) -> None:
    """A bias before BatchNorm has no gradient but rounding, which Adam enlarges: hence 1e-8."""
    for one, other in zip(found, wanted, strict=True):
        assert not one.training and all(weight.grad is None for weight in one.parameters())
        for name, value in other.state_dict().items():
            torch.testing.assert_close(
                one.state_dict()[name].cpu(), value, rtol=0, atol=1e-8, msg=lambda said, name=name: f"{name}: {said}"
            )


@pytest.mark.parametrize(
    "recipe", [name if name == "sgd" else pytest.param(name, marks=pytest.mark.long) for name in RECIPES]
)
def test_models_at_once_are_those_of_fit(recipe: str) -> None:
    models, data, seeds = networks(), sets(), list(range(20, 20 + MODELS))
    wanted = [
        fit(copy.deepcopy(model), own, RECIPES[recipe], seed=seed)
        for model, own, seed in zip(models, data, seeds, strict=True)
    ]
    found = fit_stacked(models, data, RECIPES[recipe], seeds=seeds)
    assert all(one is other for one, other in zip(found, models, strict=True)), "they are trained in place"
    same(found, wanted)


@pytest.mark.parametrize("kind", ["cnn", pytest.param("resnet18", marks=pytest.mark.long)])
def test_convolutions_at_once_are_those_of_fit(kind: str) -> None:
    recipe = replace(PLAIN, epochs=1)
    models, data = networks(kind, 2), sets(count=2)
    wanted = [fit(copy.deepcopy(models[seed]), data[seed], recipe, seed=seed) for seed in range(2)]
    same(fit_stacked(models, data, recipe, seeds=[0, 1]), wanted)


@pytest.mark.long
def test_sixteen_models_take_a_step_on_a_gpu_with_few_launches_and_no_wait(counts: Counts) -> None:
    found = []
    for size in (8, 4):
        models = [model.cuda() for model in networks(count=16)]
        data = [TensorSet(own.x.cuda(), own.y.cuda()) for own in sets(points=16, count=16)]
        counts.clear()
        fit_stacked(models, data, replace(PLAIN, epochs=1, batch_size=size), seeds=list(range(16)))
        found.append((counts.launches.total(), counts.syncs.total(), counts.copies.total()))
    launches, syncs, copies = (more - less for less, more in zip(*found, strict=True))
    steps = 16 // 4 - 16 // 8
    assert syncs == 0 and copies <= steps  # the draws of the augmentation
    assert 0 < launches / steps / 16 <= 4


@as_one(
    "changes, told",
    [
        ({"seeds": [1]}, "4 models, 4 sets and 1 seeds"),
        ({"sets": [*sets()[:3], sets(points=9)[0]]}, "sets of one size"),
        ({"sets": sets(points=0)}, "not empty"),
        ({"recipe": replace(PLAIN, clip_norm=None, noise_multiplier=1.0, max_grad_norm=1.0)}, "private"),
        ({"models": [*networks()[:3], networks("resnet18")[0]]}, "differ in more than their weights"),
        ({"models": [model.requires_grad_(False) for model in networks()]}, "frozen"),
        ({"models": networks("dropping")}, "drop at random"),
    ],
)
def test_what_cannot_be_trained_at_once_is_refused_in_a_line(changes: dict[str, object], told: str) -> None:
    given = {"models": networks(), "sets": sets(), "recipe": PLAIN, "seeds": list(range(MODELS))} | changes
    with pytest.raises(BadInput, match=told) as caught:
        fit_stacked(given["models"], given["sets"], given["recipe"], seeds=given["seeds"])
    assert "\n" not in str(caught.value)


def test_the_model_that_diverges_is_named() -> None:
    models = networks()
    with torch.no_grad():
        next(models[2].parameters()).fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="training of model 2 diverged in epoch 1 of 3"):
        fit_stacked(models, sets(), PLAIN, seeds=list(range(MODELS)))


@pytest.mark.long
def test_where_memory_does_not_suffice_for_all_models_each_half_is_trained_in_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = replace(PLAIN, epochs=1)
    wanted = [
        fit(model, own, recipe, seed=seed) for seed, (model, own) in enumerate(zip(networks(), sets(), strict=True))
    ]
    taken: list[int] = []

    def seen(models, *rest):
        taken.append(len(models))
        return at_once(models, *rest)

    at_once = stacked.fit_at_once
    monkeypatch.setattr(stacked, "fit_at_once", seen)
    with pretended(most=200_000):
        models = [model.cuda() for model in networks()]
        found = fit_stacked(models, on_cuda(sets()), recipe, seeds=range(MODELS))
        same([model.cpu() for model in found], wanted)
    assert taken == [4, 2, 2]
    with pretended(most=60_000), pytest.raises(torch.OutOfMemoryError):
        fit_stacked([networks()[0].cuda()], on_cuda(sets(count=1)), PLAIN, seeds=[0])


def on_cuda(data: Sequence[TensorSet]) -> list[TensorSet]:
    return [TensorSet(each.x.cuda(), each.y.cuda()) for each in data]

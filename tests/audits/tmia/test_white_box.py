"""Attacks that read the weights: their features against autograd, and what they find on over-fitted models."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.catalogue import load
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.statistics.roc import auc
from audits.tmia import white_box
from audits.tmia.answers import Answers, WhiteBox
from audits.tmia.attacks import ATTACKS, JudgeSettings
from audits.tmia.attacks.stolen_memories import best_threshold
from audits.tmia.white_box import displacement, nasr_features, proxy_head
from audits.training.fit import train_model
from audits.training.recipe import Recipe
from tests.audits.tmia.made_up_answers import WHITE_BOX

ASKED, OWN, PROXY, SHADOWS, TARGETS = 120, 60, 120, 3, 2


def small(classes: int = 4) -> tuple[nn.Module, TensorSet]:
    model = make_model("mlp", {"hidden": [5, 6]}).build((1, 3, 3), classes, 1).eval()
    rng = torch.Generator().manual_seed(2)
    return model, TensorSet(torch.rand(7, 1, 3, 3, generator=rng), torch.arange(7) % classes)


def test_features_are_those_of_autograd_point_by_point() -> None:
    model, points = small()
    found = nasr_features(model, points, chunk=3)
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    for row, (x, y) in zip(found, zip(points.x, points.y, strict=True), strict=True):
        outputs: list[torch.Tensor] = []
        inputs: list[torch.Tensor] = []
        keep = partial(held, outputs, inputs)
        handles = [layer.register_forward_hook(keep) for layer in linear]
        logits = model(x[None])
        for handle in handles:
            handle.remove()
        loss = F.cross_entropy(logits, y[None])
        norms = [gradient.norm() for gradient in torch.autograd.grad(loss, list(model.parameters()))]
        likely = logits[0].log_softmax(0)
        others = torch.cat([likely[:y], likely[y + 1 :]]).sort(descending=True).values
        hidden = inputs[-1].sort(descending=True).values
        slow = [
            *torch.stack([loss, *norms]).add(1e-12).log(),
            *(number for out in outputs for number in (out.norm(), (out > 0).float().mean())),
            *hidden, *[torch.tensor(0.0)] * 4, likely[y], *others,
        ]  # fmt: skip
        np.testing.assert_allclose(row, [number.item() for number in slow], rtol=2e-4, atol=1e-5)


def held(outputs: list, inputs: list, module: nn.Module, given: tuple, out: torch.Tensor) -> None:
    outputs.append(out[0])
    inputs.append(given[0][0])


def test_models_of_two_classes_have_features_of_the_same_form() -> None:
    model, points = small(classes=2)
    found = nasr_features(model, points)
    assert found.shape[1] == 1 + 6 + 2 * 3 + 10 + 1 + 3
    assert np.isfinite(found).all() and (found[:, -2:] == 0).all()


def test_the_proxy_is_where_the_penalised_loss_has_no_slope() -> None:
    rng = torch.Generator().manual_seed(4)
    features, y = 30 * torch.randn(80, 5, generator=rng, dtype=torch.float64), torch.arange(80) % 3
    weight, bias = (part.requires_grad_() for part in proxy_head(features, y, 3))
    loss = F.cross_entropy(features @ weight.T + bias, y) + 1e-3 / 2 * weight.square().sum()
    for slope in torch.autograd.grad(loss, [weight, bias]):
        assert float(slope.abs().max()) < 1e-3


def test_a_head_that_is_its_own_proxy_is_not_displaced() -> None:
    model, points = small()
    head = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    outside = TensorSet(torch.rand(60, 1, 3, 3, generator=torch.Generator().manual_seed(5)), torch.arange(60) % 4)
    before = displacement(model, points, outside)
    held: list[torch.Tensor] = []
    handle = head.register_forward_pre_hook(lambda module, given: held.append(given[0]))
    model(outside.x)
    handle.remove()
    weight, bias = proxy_head(held[0].detach().double(), outside.y, 4)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
    assert np.abs(before).max() > 0.01
    np.testing.assert_allclose(displacement(model, points, outside), 0.0, atol=1e-5)
    with pytest.raises(BadInput, match="points that the model did not train on"):
        displacement(model, points, TensorSet(outside.x[:0], outside.y[:0]))


def test_the_threshold_is_the_best_of_all() -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        values, member = rng.integers(0, 6, 20).astype(float), rng.random(20) < 0.5
        found = best_threshold(values, member)
        best = max(((values > cut) == member).sum() for cut in (-np.inf, *values))
        assert ((values > found) == member).sum() == best


@cache
def over_fitted() -> tuple[WhiteBox, np.ndarray]:
    """Return what MLPs show that know their 60 digits by heart, and which targets trained on which candidates."""
    digits = load("digits")
    order = np.random.default_rng(7).permutation(len(digits.labels))
    candidates, mine, proxy = np.split(order[: 2 * ASKED + PROXY], [ASKED, 2 * ASKED])
    recipe = Recipe(optimizer="adam", learning_rate=1e-2, epochs=60, batch_size=50)
    architecture = make_model("mlp", {"hidden": [32]})

    def looked(ids: np.ndarray, index: int) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(100 + index)
        own = rng.permutation(len(ids))[:OWN]
        points = digits.tensors(ids[own])
        net = train_model(lambda init: architecture.build(digits.shape, 10, init), points, recipe, index)
        assert bool((net(points.all()[0]).argmax(1) == points.y).all())
        asked, outside = digits.tensors(ids), digits.tensors(proxy)
        member = np.isin(np.arange(len(ids)), own)
        with pytest.MonkeyPatch.context() as patch:  # a proxy that is nearly at its minimum shows as much
            patch.setattr(white_box, "STEPS", 30)
            return nasr_features(net, asked), displacement(net, asked, outside), member

    shadows = [np.stack(part) for part in zip(*(looked(mine, index) for index in range(SHADOWS)), strict=True)]
    targets = [np.stack(p) for p in zip(*(looked(candidates, 50 + index) for index in range(TARGETS)), strict=True)]
    nobody = [part[:0] for part in targets]
    seen = WhiteBox(
        {"target": targets[0], "null": nobody[0]}, {"target": targets[1], "null": nobody[1]},
        shadows[0], shadows[1], shadows[2],
    )  # fmt: skip
    return seen, targets[2]


@pytest.mark.parametrize("name", WHITE_BOX)
def test_over_fitted_models_show_their_training_set(name: str) -> None:
    _, member = over_fitted()
    found = found_of_over_fitted(name)
    assert np.mean([auc(own, flags) for own, flags in zip(found.statistic["target"], member, strict=True)]) > 0.6
    called = found.decision["target"]
    assert called[member].mean() > called[~member].mean() + 0.1


@pytest.mark.parametrize("name", WHITE_BOX)
def test_where_members_and_others_are_exchanged_there_is_chance(name: str) -> None:
    _, member = over_fitted()
    found = found_of_over_fitted(name)
    rng = np.random.default_rng(8)
    aucs = []
    for own, flags in zip(found.statistic["target"], member, strict=True):
        for side in (own[flags], own[~flags]):
            aucs += [auc(side, rng.permutation(len(side)) < len(side) // 2) for _ in range(20)]
    assert abs(np.mean(aucs) - 0.5) < 0.02


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize("name", WHITE_BOX)
def test_what_is_learnt_depends_on_reference_models_alone(name: str) -> None:
    """Half of the targets gone, the others are judged as before."""
    seen, _ = over_fitted()
    fewer = WhiteBox(
        {group: part[:1] for group, part in seen.features.items()},
        {group: part[:1] for group, part in seen.displacement.items()},
        seen.shadow_features, seen.shadow_displacement, seen.shadow_member,
    )  # fmt: skip
    whole, part = found_by(name, seen), found_by(name, fewer)
    np.testing.assert_allclose(part.statistic["target"], whole.statistic["target"][:1], rtol=1e-5)


def found_by(name: str, seen: WhiteBox):  # type: ignore[no-untyped-def]  # a ruling
    return ATTACKS[name]().find(Answers(white_box=seen), JudgeSettings(0.05), 0)


@cache
def found_of_over_fitted(name: str):  # type: ignore[no-untyped-def]  # a ruling
    return found_by(name, over_fitted()[0])

"""Random labels and SalUn are the written-out updates, and SalUn holds every weight outside its mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.seeds import derive_seed
from audits.training.loop import make_optimizer
from audits.training.recipe import Recipe
from audits.unlearning.mixture import mixed, relabelled
from audits.unlearning.salun import hold, saliency_mask
from tests.audits.unlearning.cases import CLASSES, FORGET, RETAIN, plain, points, run, same_state, trained
from tests.cases.families import as_one
from tests.cases.slow_net import Floats, SlowAdam, SlowNet, SlowSGD, largest_difference

OPTIMIZERS = ["sgd", "adam", "adamw"]


def slow_mask(model: nn.Module, fraction: float) -> list[NDArray[np.bool_]]:
    """Return where |Σ ∇CE| over the forget set is largest, one point and one weight after the other."""
    net, data = SlowNet(model), points(FORGET, 1, torch.float64)
    total = [np.zeros_like(weight) for weight in net.weights]
    for i in range(FORGET):
        x, y = data.x.numpy()[i : i + 1], data.y.numpy()[i : i + 1]
        for whole, part in zip(total, net.gradients(x, net.entropy_gradient(x, y)), strict=True):
            whole += part
    order = sorted(
        (-abs(value), which, place) for which, part in enumerate(total) for place, value in enumerate(part.flat)
    )
    kept = [np.zeros(weight.shape, dtype=bool) for weight in net.weights]
    for _, which, place in order[: int(fraction * len(order))]:
        kept[which].flat[place] = True
    return kept


def slow_mixtures(seed: int, settings: dict[str, Any]) -> tuple[Floats, list[NDArray[np.int64]]]:
    """Return inputs of the retain set and, behind it, of the forget set, and the labels in each epoch."""
    forget, retain = points(FORGET, 1, torch.float64), points(RETAIN, 2, torch.float64)
    generator = torch.Generator().manual_seed(derive_seed(seed, "labels"))
    found: list[NDArray[np.int64]] = []
    for _ in range(settings["epochs"]):
        if found and settings.get("draws", "once") == "once":
            found.append(found[0])
        elif settings.get("labels", "wrong") == "any":
            drawn = torch.randint(CLASSES, (FORGET,), generator=generator).tolist()
            found.append(np.array(retain.y.tolist() + drawn))
        else:
            shifts = torch.randint(1, CLASSES, (FORGET,), generator=generator).tolist()
            wrong = [(label + shift) % CLASSES for label, shift in zip(forget.y.tolist(), shifts, strict=True)]
            found.append(np.array(retain.y.tolist() + wrong))
    return np.concatenate([retain.x.numpy(), forget.x.numpy()]), found


def slow_batches(settings: dict[str, Any], order: torch.Generator) -> list[NDArray[np.int64]]:
    """Return the batches of an epoch, of eight points of both sets, or of the forget set and then of the retain set."""
    if settings.get("batches", "mixed") == "mixed":
        shuffled = torch.randperm(FORGET + RETAIN, generator=order).numpy()
        return [shuffled[:8], shuffled[8:16], shuffled[16:24], shuffled[24:]]
    forget = RETAIN + torch.randperm(FORGET, generator=order).numpy()
    retain = torch.randperm(RETAIN, generator=order).numpy()
    return [forget[:8], forget[8:], retain[:8], retain[8:16], retain[16:]]


def slow_descent(
    model: nn.Module, settings: dict[str, Any], seed: int, kept: list[NDArray[np.bool_]] | None = None
) -> SlowNet:
    """Return the network after CE descent on the mixture; weights and moments outside ``kept`` are set back."""
    net = SlowNet(model)
    start = [weight.copy() for weight in net.weights]
    optimizer: SlowSGD | SlowAdam = SlowAdam(net, settings["weight_decay"], settings["optimizer"] == "adamw")
    if settings["optimizer"] == "sgd":
        optimizer = SlowSGD(net, settings["momentum"], settings["weight_decay"])
    moments = [optimizer.speed] if isinstance(optimizer, SlowSGD) else [optimizer.first, optimizer.second]
    x, labels = slow_mixtures(seed, settings)
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))
    for epoch in range(settings["epochs"]):
        rate = settings["learning_rate"] * (1 + math.cos(math.pi * epoch / settings["epochs"])) / 2
        y = labels[epoch]
        for rows in slow_batches(settings, order):
            optimizer.step(net.gradients(x[rows], net.entropy_gradient(x[rows], y[rows])), rate)
            for i, inside in enumerate(kept or []):
                net.weights[i][~inside] = start[i][~inside]
                for moment in moments:
                    moment[i][~inside] = 0.0
    return net


def settings_of(optimizer: str) -> dict[str, Any]:
    rate = 0.05 if optimizer == "sgd" else 0.01
    return {
        "optimizer": optimizer,
        "learning_rate": rate,
        "epochs": 4,
        "batch_size": 8,
        "momentum": 0.9,
        "weight_decay": 0.05,
    }


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_random_label_is_the_written_out_update(optimizer: str) -> None:
    model, settings = plain(), settings_of(optimizer)
    assert largest_difference(run("random_label", model, **settings), slow_descent(model, settings, seed=4)) < 1e-10


SOURCE = {"labels": "any", "draws": "epoch"}


@pytest.mark.parametrize("change", [SOURCE, {"labels": "any"}, {"draws": "epoch"}], ids=["source", "any", "epoch"])
def test_label_draws_of_the_source_are_the_written_out_ones(change: dict[str, str]) -> None:
    model, settings = plain(), settings_of("sgd") | change
    found = run("random_label", model, **settings)
    assert largest_difference(found, slow_descent(model, settings, seed=4)) < 1e-10
    usual = run("random_label", model, **settings_of("sgd"))
    assert not same_state(found, usual)
    kept = slow_mask(model, 0.2)
    for batches in ("mixed", "apart"):
        settings["batches"] = batches
        wanted = slow_descent(model, settings, seed=4, kept=kept)
        assert largest_difference(run("salun", model, fraction=0.2, **settings), wanted) < 1e-10


def test_labels_of_any_class_are_drawn_evenly_the_right_one_too() -> None:
    data = points(6000, 1)
    found = relabelled(data, CLASSES, torch.Generator().manual_seed(0), "any").y
    for label in range(CLASSES):
        drawn = found[data.y == label].bincount(minlength=CLASSES)
        assert (drawn / drawn.sum() - 1 / CLASSES).abs().max() < 0.05


def test_wrong_labels_are_wrong_drawn_evenly_and_decided_by_the_seed() -> None:
    data = points(6000, 1)
    found = [relabelled(data, CLASSES, torch.Generator().manual_seed(seed)).y for seed in (0, 0, 1)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    for label in range(CLASSES):
        drawn = found[0][data.y == label].bincount(minlength=CLASSES)
        assert drawn[label] == 0
        others = torch.cat([drawn[:label], drawn[label + 1 :]]) / drawn.sum()
        assert (others - 1 / (CLASSES - 1)).abs().max() < 0.05


def test_random_label_unlearns_the_labels_of_the_forget_set() -> None:
    model, forget = trained(), points(FORGET, 1)
    found = run("random_label", model, epochs=20)
    before, after = ((each(forget.x).argmax(1) == forget.y).sum().item() for each in (model, found))
    assert after < before


def test_a_mixture_holds_the_retain_points_first() -> None:
    retain, forget = points(RETAIN, 2), points(FORGET, 1)
    both = mixed(retain, forget)
    assert torch.equal(both.x[:RETAIN], retain.x) and torch.equal(both.y[RETAIN:], forget.y)
    assert len(both) == RETAIN + FORGET


@as_one("fraction", [0.05, 0.2, 0.77, 1.0])
def test_the_mask_is_the_top_fraction_of_summed_gradients_over_all_parameters(fraction: float) -> None:
    model = plain()
    found = saliency_mask(model, points(FORGET, 1, torch.float64), fraction)
    assert all(np.array_equal(a.numpy(), b) for a, b in zip(found, slow_mask(model, fraction), strict=True))


def test_the_mask_does_not_depend_on_how_the_forget_set_is_cut() -> None:
    model, forget = plain(), points(FORGET, 1, torch.float64)
    whole, cut = (saliency_mask(model, forget, 0.3, chunk) for chunk in (256, 4))
    assert all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))


def test_the_smallest_mask_still_holds_one_weight() -> None:
    assert sum(int(part.sum()) for part in saliency_mask(plain(), points(1, 1, torch.float64), 1e-9)) == 1


@as_one("fraction", [0.2, 0.6])
@as_one("optimizer", OPTIMIZERS)
def test_salun_is_the_written_out_update(optimizer: str, fraction: float) -> None:
    model, settings = plain(), settings_of(optimizer)
    wanted = slow_descent(model, settings, seed=4, kept=slow_mask(model, fraction))
    assert largest_difference(run("salun", model, fraction=fraction, **settings), wanted) < 1e-10


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weights_outside_the_mask_stay_bit_for_bit_with_decay_and_momentum_on(optimizer: str) -> None:
    model = trained()
    keep = saliency_mask(trained(), points(FORGET, 1), 0.2)
    found = run("salun", model, **settings_of(optimizer))
    for inside, old, new in zip(keep, model.parameters(), found.parameters(), strict=True):
        assert torch.equal(old[~inside].view(torch.int32), new[~inside].view(torch.int32))
        assert not bool((old[inside] == new[inside]).any())
    assert 0 < sum(int(inside.sum()) for inside in keep) < sum(part.numel() for part in keep) / 4


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_holding_clears_what_the_optimizer_remembers_outside_the_mask(optimizer: str) -> None:
    model, data = plain(), points(FORGET, 1, torch.float64)
    keep, start = saliency_mask(model, data, 0.2), [weight.detach().clone() for weight in model.parameters()]
    stepper = make_optimizer(model, Recipe(optimizer=optimizer, weight_decay=0.05))
    F.cross_entropy(model(data.x), data.y).backward()
    stepper.step()
    hold(model, keep, start, stepper)
    for weight, inside, before in zip(model.parameters(), keep, start, strict=True):
        assert torch.equal(weight[~inside], before[~inside])
        state = stepper.state[weight]
        assert set(state) - {"step"} == ({"momentum_buffer"} if optimizer == "sgd" else {"exp_avg", "exp_avg_sq"})
        for name in set(state) - {"step"}:
            assert not state[name][~inside].any() and bool((state[name][inside] != 0).all())


def test_salun_moves_batch_norm_statistics() -> None:
    model = trained()
    found = run("salun", model)
    for name in ("3.running_mean", "3.running_var"):
        assert not torch.equal(model.get_buffer(name), found.get_buffer(name))


def test_salun_with_every_weight_in_the_mask_is_random_label() -> None:
    model = trained()
    assert same_state(run("salun", model, fraction=1.0), run("random_label", model))
    assert not same_state(run("salun", model, fraction=0.5), run("random_label", model))

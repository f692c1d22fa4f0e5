"""The training loop is the textbook's, depends on its seed alone, and says when it diverges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet, as_float
from audits.errors import BadInput
from audits.models import make_model
from audits.seeds import derive_seed
from audits.training.fit import fit, train_model
from audits.training.loop import EpochReport, accuracy, augmented, batches, logits, make_optimizer, make_schedule
from audits.training.recipe import Recipe
from tests.cases.families import as_one
from tests.cases.slow_net import SlowAdam, SlowNet, SlowSGD, clipped, largest_difference

POINTS, FEATURES, CLASSES = 21, 6, 3
RECIPE = Recipe(optimizer="sgd", learning_rate=0.1, epochs=3, batch_size=8, weight_decay=0.01, momentum=0.9)


def points(dtype: torch.dtype = torch.float64, count: int = POINTS) -> TensorSet:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(count, FEATURES, generator=generator, dtype=torch.float64).to(dtype)
    return TensorSet(x, torch.randint(CLASSES, (count,), generator=generator))


def network(seed: int = 1, **settings: object) -> nn.Module:
    return make_model("mlp", {"hidden": [9], **settings}).build((FEATURES,), CLASSES, seed)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().double().flatten() for value in model.state_dict().values()])


def slow_fit(model: nn.Module, data: TensorSet, recipe: Recipe, seed: int) -> SlowNet:
    """Return the network that ``recipe`` leads to, in NumPy."""
    net = SlowNet(model)
    optimizer = {
        "sgd": lambda: SlowSGD(net, recipe.momentum, recipe.weight_decay),
        "adam": lambda: SlowAdam(net, recipe.weight_decay),
        "adamw": lambda: SlowAdam(net, recipe.weight_decay, decoupled=True),
    }[recipe.optimizer]()
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))
    x, y = data.x.numpy(), data.y.numpy()
    for epoch in range(recipe.epochs):
        rate = recipe.learning_rate
        if recipe.schedule == "cosine":
            rate *= (1 + math.cos(math.pi * epoch / recipe.epochs)) / 2
        if recipe.schedule == "one_cycle":
            rate *= np.interp((epoch + 0.5) / recipe.epochs, [0, 0.2, 1], [0, 1, 0])
        shuffled = torch.randperm(len(y), generator=order).numpy()
        for rows in (shuffled[:8], shuffled[8:16], shuffled[16:]):
            gradients = net.gradients(x[rows], net.entropy_gradient(x[rows], y[rows], recipe.label_smoothing))
            if recipe.clip_norm is not None:
                gradients = clipped(gradients, recipe.clip_norm)
            optimizer.step(gradients, rate)
    return net


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"optimizer": "adam"},
        {"optimizer": "adamw", "weight_decay": 0.1},
        {"schedule": "cosine"},
        {"schedule": "one_cycle"},
        {"label_smoothing": 0.2},
        {"clip_norm": 0.05},
        {"momentum": 0.0, "weight_decay": 0.0},
        {"optimizer": "adamw", "schedule": "cosine", "label_smoothing": 0.1, "clip_norm": 0.5},
    ],
    ids=lambda change: ",".join(change) or "plain",
)
def test_fit_is_the_written_out_loop_in_float64(change: dict[str, object]) -> None:
    recipe = replace(RECIPE, **change)
    model = network().double()
    slow = slow_fit(model, points(), recipe, seed=7)
    fit(model, points(), recipe, seed=7)
    assert largest_difference(model, slow) < 1e-10


def test_a_fit_depends_on_its_seed_and_not_on_the_global_generator() -> None:
    found = []
    for state, seed in ((1, 7), (2, 7), (1, 8)):
        model = network(dropout=0.5)
        torch.manual_seed(state)
        found.append(weights(fit(model, points(torch.float32), RECIPE, seed=seed)))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_a_fit_leaves_the_global_generators_alone() -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    fit(network(dropout=0.5), points(torch.float32), RECIPE, seed=7)
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])


def test_dropout_is_at_work_while_training_and_not_after() -> None:
    plain, dropped = (fit(network(dropout=p), points(torch.float32), RECIPE, seed=7) for p in (0.0, 0.5))
    assert not torch.equal(weights(plain), weights(dropped))
    x = points(torch.float32).x
    assert torch.equal(dropped(x), dropped(x))


def test_a_trained_model_depends_on_build_data_recipe_and_seed_only() -> None:
    def build(seed: int) -> nn.Module:
        return network(seed, batch_norm=True)

    first, again = (train_model(build, points(torch.float32), RECIPE, 3) for _ in range(2))
    other = train_model(build, points(torch.float32), RECIPE, 4)
    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))


@as_one("count, sizes", [(16, [8, 8]), (17, [8, 9]), (18, [8, 8, 2]), (1, [1]), (9, [9])])
def test_a_last_batch_of_one_joins_its_neighbour(count: int, sizes: list[int]) -> None:
    parts = batches(count, 8, torch.Generator().manual_seed(0))
    assert [len(part) for part in parts] == sizes
    assert sorted(torch.cat(parts).tolist()) == list(range(count))


def test_batch_norm_trains_on_any_number_of_points() -> None:
    fit(network(batch_norm=True), points(torch.float32, 17), RECIPE, seed=0)


def test_every_epoch_has_a_fresh_order() -> None:
    generator = torch.Generator().manual_seed(0)
    assert not torch.equal(torch.cat(batches(50, 8, generator)), torch.cat(batches(50, 8, generator)))


def test_observers_get_every_epoch_with_its_mean_loss() -> None:
    first: list[EpochReport] = []
    second: list[EpochReport] = []
    model, data = network().double(), points()
    start = F.cross_entropy(model(data.x), data.y).item()
    frozen = replace(RECIPE, learning_rate=1e-12, epochs=4)
    fit(model, data, frozen, seed=0, observers=(first.append, second.append))
    assert first == second
    assert [report.epoch for report in first] == [0, 1, 2, 3]
    assert {report.points for report in first} == {POINTS}
    assert all(abs(report.loss - start) < 1e-6 for report in first)  # a mean over points, though batches differ in size


def test_the_loss_falls() -> None:
    reports: list[EpochReport] = []
    fit(network(), points(torch.float32), replace(RECIPE, epochs=30), seed=0, observers=(reports.append,))
    assert reports[-1].loss < 0.5 * reports[0].loss


def test_an_observer_may_stop_the_training() -> None:
    class Stopped(Exception):
        pass

    def stop(report: EpochReport) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        fit(network(), points(torch.float32), RECIPE, seed=0, observers=(stop,))


@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_cosine_starts_at_the_rate_and_reaches_zero(epochs: int) -> None:
    optimizer = make_optimizer(network(), RECIPE)
    schedule = make_schedule(optimizer, "cosine", epochs)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(epochs):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    wanted = [0.05 * (1 + math.cos(math.pi * epoch / epochs)) for epoch in range(epochs + 1)]
    np.testing.assert_allclose(rates, wanted, rtol=0, atol=1e-15)
    assert rates[0] == 0.1 and abs(rates[-1]) < 1e-15


def test_no_epochs_leave_the_weights_as_they_were() -> None:
    model = network()
    before = weights(model)
    assert torch.equal(before, weights(fit(model, points(torch.float32), replace(RECIPE, epochs=0), seed=0)))
    assert not model.training


@pytest.mark.parametrize("epochs", [1, 5])
def test_divergence_is_reported_even_in_the_very_last_step(epochs: int) -> None:
    recipe = replace(RECIPE, learning_rate=3e38, weight_decay=10.0, batch_size=64, epochs=epochs)
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        fit(network(), points(torch.float32), recipe, seed=0)


def test_an_empty_training_set_is_refused() -> None:
    data = points(torch.float32)
    with pytest.raises(BadInput, match="empty"):
        fit(network(), TensorSet(data.x[:0], data.y[:0]), RECIPE, seed=0)


def test_bfloat16_trains_on_the_cpu_and_keeps_float32_weights() -> None:
    data = points(torch.float32)
    plain, half = (
        fit(network(), data, replace(RECIPE, dtype=dtype, epochs=20), seed=0) for dtype in ("float32", "bfloat16")
    )
    assert {parameter.dtype for parameter in half.parameters()} == {torch.float32}
    assert not torch.equal(weights(plain), weights(half))
    assert torch.allclose(weights(plain), weights(half), atol=0.2)
    assert accuracy(half, data) > 0.8


def test_bytes_are_read_as_floats_between_0_and_1() -> None:
    values = torch.tensor([[[[0, 255, 51]]]], dtype=torch.uint8)
    assert torch.equal(as_float(values), torch.tensor([[[[0.0, 1.0, 0.2]]]]))
    assert values.tolist() == [[[[0, 255, 51]]]]  # the set itself is not scaled


def test_bytes_and_floats_train_to_the_same_weights() -> None:
    x = torch.randint(256, (20, 1, 3, 2), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    y = torch.arange(20) % CLASSES
    of_bytes, of_floats = (fit(network(), TensorSet(part, y), RECIPE, seed=0) for part in (x, x.float() / 255))
    assert torch.equal(weights(of_bytes), weights(of_floats))


def test_a_flip_mirrors_about_half_of_the_images_and_changes_nothing_else() -> None:
    x = torch.rand(200, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    found = augmented(x, 0, True, torch.Generator().manual_seed(1))
    mirrored = (found == x.flip(-1)).flatten(1).all(1)
    kept = (found == x).flatten(1).all(1)
    assert (mirrored ^ kept).all()
    assert 70 < int(mirrored.sum()) < 130


def test_a_shift_moves_every_image_by_up_to_its_pixels_with_zeros_behind() -> None:
    x = torch.rand(60, 1, 4, 5, generator=torch.Generator().manual_seed(0)) + 0.1
    found = augmented(x, 1, False, torch.Generator().manual_seed(1))
    seen = set()
    for old, new in zip(x, found, strict=True):
        fits = []
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                moved = torch.zeros_like(old)
                for row in range(4):
                    for column in range(5):
                        if 0 <= row - down < 4 and 0 <= column - right < 5:
                            moved[0, row, column] = old[0, row - down, column - right]
                if torch.equal(moved, new):
                    fits.append((down, right))
        assert len(fits) == 1
        seen.update(fits)
    assert len(seen) == 9


@pytest.mark.parametrize("change", [{"augment_shift": 1}, {"flip": True}])
def test_augmentation_asked_for_is_used(change: dict[str, object]) -> None:
    x = torch.rand(20, 1, 3, 2, generator=torch.Generator().manual_seed(0))
    data = TensorSet(x, torch.arange(20) % CLASSES)
    plain, changed = (fit(network(), data, recipe, seed=0) for recipe in (RECIPE, replace(RECIPE, **change)))
    assert not torch.equal(weights(plain), weights(changed))


def test_chunks_of_logits_are_the_logits() -> None:
    model, x = network().double().eval(), points().x
    assert torch.allclose(logits(model, x, chunk=4), model(x), rtol=0, atol=1e-12)


def test_accuracy_is_the_share_of_right_labels_and_undefined_on_nothing() -> None:
    class Zero(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.one_hot(torch.zeros(len(x), dtype=torch.int64), CLASSES).float()

    data = points(torch.float32)
    assert accuracy(Zero(), data) == float((data.y == 0).double().mean())
    assert math.isnan(accuracy(Zero(), TensorSet(data.x[:0], data.y[:0])))


@as_one(
    "field, value",
    [
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("batch_size", 0),
        ("epochs", -1),
        ("weight_decay", -0.1),
        ("momentum", 1.0),
        ("label_smoothing", 1.0),
        ("clip_norm", 0.0),
        ("augment_shift", -1),
    ],
)
def test_recipes_that_cannot_work_are_refused(field: str, value: float) -> None:
    with pytest.raises(BadInput, match=f"recipe.{field}"):
        replace(RECIPE, **{field: value})

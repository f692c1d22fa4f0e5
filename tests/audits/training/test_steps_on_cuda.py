"""On a GPU no step of a training or an unlearning waits for it: twice the steps in an epoch, as many waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.gnq.noise import fit_noised
from audits.models import make_model
from audits.training.engines.base import ENGINES
from audits.training.fit import fit
from audits.training.loop import augmented, windows
from audits.training.recipe import Recipe
from audits.unlearning import UNLEARNERS, make_unlearner
from benchmarks.pretended import Counts, pretended
from tests.audits.unlearning import cases

POINTS, CLASSES, EPOCHS = 16, 4, 2
PLAIN = Recipe(epochs=EPOCHS, optimizer="sgd", clip_norm=1.0)
PRIVATE = replace(PLAIN, clip_norm=None, noise_multiplier=0.5, max_grad_norm=1.0, augment_shift=1, flip=True)


@pytest.fixture
def counts() -> Iterator[Counts]:
    with pretended() as found:
        yield found


SHORT = ("augmented",)


def listed(names: Iterable[str]) -> list[Any]:
    """Return the names; those for which others stand are marked long."""
    return [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in names]


def images() -> TensorSet:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (POINTS, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return TensorSet(x.cuda(), (torch.arange(POINTS) % CLASSES).cuda())


def network() -> nn.Module:
    return make_model("cnn", {"channels": [3], "hidden": 6}).build((1, 8, 8), CLASSES, 1).cuda()


def noised(model: nn.Module, data: TensorSet, recipe: Recipe) -> nn.Module:
    return fit_noised(model, data, recipe, seed=3, marked=np.arange(POINTS) % 2 == 0, scale=0.1)


def plainly(model: nn.Module, data: TensorSet, recipe: Recipe) -> nn.Module:
    return fit(model, data, recipe, seed=3)


Train = Callable[[nn.Module, TensorSet, Recipe], nn.Module]
TRAININGS: dict[str, tuple[Train, Recipe, int]] = {
    "plain": (plainly, PLAIN, 0),
    "adamw": (plainly, replace(PLAIN, optimizer="adamw", clip_norm=None), 0),
    "augmented": (plainly, replace(PLAIN, augment_shift=1, flip=True), 2),  # its draws, in each step
    "bfloat16": (plainly, replace(PLAIN, dtype="bfloat16"), 0),
    "noised": (noised, PLAIN, 6),  # the noise of each parameter
    **{f"private, {name}": (plainly, replace(PRIVATE, private_engine=name), 3) for name in ENGINES},
}


def waits(work: Callable[[int], object], counts: Counts, sizes: tuple[int, int]) -> tuple[Counter[str], int]:
    """Return the waits that more steps add, by line, and the copies from the host."""
    found = []
    for size in sizes:
        counts.clear()
        work(size)
        found.append((counts.syncs.copy(), counts.copies.total()))
    return found[1][0] - found[0][0], found[1][1] - found[0][1]


@pytest.mark.parametrize("name", listed(TRAININGS))
@pytest.mark.filterwarnings("ignore:Secure RNG turned off")
def test_a_step_of_a_training_waits_for_nothing(name: str, counts: Counts) -> None:
    train, recipe, copies = TRAININGS[name]
    data, model = images(), network()
    state = {key: value.clone() for key, value in model.state_dict().items()}

    def work(size: int) -> object:
        model.load_state_dict(state)
        return train(model, data, replace(recipe, batch_size=size))

    added, copied = waits(work, counts, (8, 4))
    assert not added
    assert copied <= copies * EPOCHS * POINTS // 8


@pytest.mark.parametrize("name", listed(sorted(set(UNLEARNERS) - {"identity"})))
def test_a_step_of_unlearning_waits_for_nothing(name: str, counts: Counts) -> None:
    sets = [cases.points(16, 1), cases.points(32, 2)]
    forget, retain = (TensorSet(each.x.cuda(), each.y.cuda()) for each in sets)
    model = cases.trained().cuda()
    settings = cases.SETTINGS[name]

    def work(size: int) -> object:
        if name == "sfr_on":
            changed = settings | {"iterations": 64 // size}
        else:
            changed = settings | {key: size for key in settings if key.endswith("batch_size")}
        method = make_unlearner(name, changed)
        return method.unlearn(
            model,
            forget,
            retain,
            seed=4,
            recipe=replace(cases.RECIPE, batch_size=size),
            build=lambda seed: cases.build(seed).cuda(),
        )

    added, copied = waits(work, counts, (8, 4))
    assert not added
    assert copied <= (2 if name == "sfr_on" else 0)  # the order of further passes


@pytest.mark.parametrize("channels", [1, 3])
def test_shifted_images_are_windows_of_the_padded_ones(channels: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(6, channels, 5, 4, generator=generator)
    offsets = torch.tensor([[0, 0], [2, 1], [1, 2], [2, 2], [0, 2], [1, 1]])
    found = windows(x, offsets, (3, 2))
    for image, (top, left), one in zip(x, offsets.tolist(), found, strict=True):
        assert torch.equal(one, image[:, top : top + 3, left : left + 2])
    shifted = augmented(x, 2, False, generator)
    assert shifted.shape == x.shape and not torch.equal(shifted, x) and shifted.is_contiguous()

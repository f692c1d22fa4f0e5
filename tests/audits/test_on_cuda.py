"""All that computes with torch runs on a GPU: no devices mixed, and what is found is what the CPU finds.

The GPU is a pretended one (``benchmarks/pretended``), whose arithmetic is the CPU's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.apollo.attacks import ATTACKS as APOLLO
from audits.apollo.evidence import KINDS, Group
from audits.conformance.attacks import case_of
from audits.data.tensors import TensorSet
from audits.gnq.attacks import POOL_ATTACKS
from audits.mia.attacks import MIA_ATTACKS
from audits.models import MODELS, make_model
from audits.tmia.attacks import ATTACKS as TMIA
from audits.tmia.selectors import SELECTORS
from audits.training.engines.base import ENGINES
from audits.training.fit import fit, train_model
from audits.training.loop import accuracy
from audits.training.recipe import Recipe
from audits.uniqueness.accumulate import Trace, fit_traced
from audits.uniqueness.rankings import RANKINGS
from audits.unlearning import UNLEARNERS, make_unlearner
from benchmarks.pretended import Counts, pretended
from tests.audits.apollo.evidence.scene import Scene, make_scene, shorten_searches
from tests.audits.test_contracts_models import CLASSES, SMALL
from tests.audits.tmia.test_selectors import make_case
from tests.audits.unlearning import cases

GPU = "cuda"
SHORT = {"cnn", "fast", "scrub", "yoqo", "online", "neighbours", "lira"}
"""Of each table those that stand for the rest in the short tests."""


def listed(names: Sequence[str]) -> list[Any]:
    """Return the entries of a table; those that others stand for are marked long."""
    return [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in names]


@pytest.fixture
def counts() -> Iterator[Counts]:
    with pretended() as found:
        yield found


def on(device: str, data: TensorSet) -> TensorSet:
    return TensorSet(data.x.to(device), data.y.to(device))


def same_weights(there: nn.Module, here: nn.Module) -> None:
    """The weights of a model on the GPU are those of one on the CPU, up to rounding."""
    found, wanted = there.state_dict(), here.state_dict()
    assert all(value.device.type == GPU for value in found.values())
    for name, value in wanted.items():
        torch.testing.assert_close(found[name].cpu(), value, rtol=1e-4, atol=1e-5, msg=name)


# ------------------------------------------------------------------------------------------------- models and training


def points_of(name: str, count: int = 16) -> TensorSet:
    small, generator, places = SMALL[name], torch.Generator().manual_seed(2), torch.arange(count)
    if small.tokens:
        return TensorSet(torch.randint(1, small.tokens, (count, *small.shape), generator=generator), places % 5)
    return TensorSet(torch.rand(count, *small.shape, generator=generator), places % CLASSES)


@pytest.mark.parametrize("name", listed(list(MODELS)))
def test_a_model_trains_and_answers_there(name: str, counts: Counts) -> None:
    images = len(SMALL[name].shape) == 3
    wide = {"width": 8} if "resnet" in name else {}  # narrower 1×1 convolutions crash torch 2.14 on some CPUs
    recipe = Recipe(epochs=2, batch_size=8, augment_shift=int(images), flip=images, clip_norm=1.0, optimizer="sgd")

    def trained(device: str) -> nn.Module:
        def build(seed: int) -> nn.Module:
            return make_model(name, SMALL[name].settings | wide).build(SMALL[name].shape, CLASSES, seed)

        model = train_model(build, on(device, points_of(name)), recipe, seed=3)
        assert 0 <= accuracy(model, on(device, points_of(name))) <= 1
        return model

    same_weights(trained(GPU), trained("cpu"))


@pytest.mark.parametrize("name", listed(list(ENGINES)))
@pytest.mark.filterwarnings("ignore:Secure RNG turned off")
def test_an_engine_of_private_training_steps_there(name: str, counts: Counts) -> None:
    recipe = Recipe(
        epochs=1, batch_size=6, noise_multiplier=0.5, max_grad_norm=1.0, private_engine=name, flip=True, augment_shift=1
    )
    generator = torch.Generator().manual_seed(2)
    images = TensorSet(torch.rand(12, 1, 8, 8, generator=generator), torch.arange(12) % CLASSES)

    def trained(device: str) -> nn.Module:
        model = make_model("cnn", {"channels": [3], "hidden": 6}).build((1, 8, 8), CLASSES, 1).to(device)
        return fit(model, on(device, images), recipe, seed=3)

    same_weights(trained(GPU), trained("cpu"))


# ----------------------------------------------------------------------------------------------------------- unlearning


@pytest.mark.parametrize("name", listed(list(UNLEARNERS)))
def test_a_method_unlearns_there(name: str, counts: Counts) -> None:
    original = cases.trained()

    def unlearned(device: str) -> nn.Module:
        sets = on(device, cases.points(cases.FORGET, 1)), on(device, cases.points(cases.RETAIN, 2))
        model = copy.deepcopy(original).to(device)
        method = make_unlearner(name, cases.SETTINGS[name])
        return method.unlearn(
            model, *sets, seed=4, recipe=cases.RECIPE, build=lambda seed: cases.build(seed).to(device)
        )

    same_weights(unlearned(GPU), unlearned("cpu"))


# ------------------------------------------------------------------------------------------------------------- evidence


def scene_on(device: str) -> Scene:
    """Return the two-target scene with all models and points on ``device``."""
    scene = make_scene()

    def moved(group: Group) -> Group:
        original, unlearned = ([model.to(device) for model in part] for part in (group.original, group.unlearned))
        return replace(group, original=original, unlearned=unlearned)

    return replace(
        scene,
        questions=replace(scene.questions, x=scene.questions.x.to(device), y=scene.questions.y.to(device)),
        population=replace(scene.population, x=scene.population.x.to(device), y=scene.population.y.to(device)),
        online=tuple(moved(group) for group in scene.online),
        offline=tuple(moved(group) for group in scene.offline),
        targets={index: model.to(device) for index, model in scene.targets.items()},
    )


@pytest.mark.parametrize("name", listed(list(KINDS)))
def test_evidence_is_gathered_there(name: str, counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_searches(monkeypatch)
    found, wanted = (scene_on(device).gather(name).arrays() for device in (GPU, "cpu"))
    for field, values in wanted.items():
        np.testing.assert_allclose(found[field], values, rtol=1e-6, atol=1e-9, err_msg=field)


# ----------------------------------------------------------------------------------------- attacks, selectors, rankings

TABLES = {"apollo": APOLLO, "gnq": POOL_ATTACKS, "mia": MIA_ATTACKS, "tmia": TMIA}
EVERY = [
    pytest.param(audit, name, id=f"{audit}-{name}", marks=() if name in SHORT - {"yoqo"} else pytest.mark.long)
    for audit, table in TABLES.items()
    for name in table
]


@pytest.mark.parametrize(("audit", "name"), EVERY)
def test_an_attack_judges_beside_it(audit: str, name: str, counts: Counts) -> None:
    case = case_of(TABLES[audit][name])
    for field, values in case.judge(case.make()).items():
        assert not field.startswith("score") or np.isfinite(values).all()


@pytest.mark.parametrize("name", listed(list(SELECTORS)))
def test_a_selector_reads_features_there(name: str, counts: Counts) -> None:
    case = make_case()
    assert isinstance(case.features, torch.Tensor)
    there = SELECTORS[name]().select(replace(case, features=case.features.to(GPU)))
    np.testing.assert_allclose(there.candidates, SELECTORS[name]().select(case).candidates, rtol=1e-5, atol=1e-7)


@pytest.fixture(scope="module")
def traces() -> tuple[Trace, Trace]:
    """What is seen of a training on the GPU, and on the CPU."""
    recipe = Recipe(optimizer="sgd", learning_rate=0.05, epochs=2, batch_size=8)

    def seen(device: str) -> Trace:
        data = on(device, cases.points(20, 1))
        model = make_model("mlp", {"hidden": [6]}).build((cases.FEATURES,), cases.CLASSES, 1).to(device)
        trace = fit_traced(
            model, data, recipe, seed=3, every=3, in_batch=True, modes=("ridge", "pinv", "diagonal"), points=data
        )
        twin = np.linspace(0.5, 1.5, 20)
        return replace(trace, twin_loss=twin, held_out_loss=twin + 0.25)

    with pretended():
        return seen(GPU), seen("cpu")


@pytest.mark.parametrize("name", listed(list(RANKINGS)))
def test_a_ranking_reads_what_was_seen_there(name: str, traces: tuple[Trace, Trace]) -> None:
    there, here = (RANKINGS[name](trace, 3) for trace in traces)
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-6)

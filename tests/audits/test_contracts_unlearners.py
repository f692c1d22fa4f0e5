"""Every unlearning method: given models and sets stay as they are, seeds decide, settings are checked."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
import torch
from torch import nn

from audits.conformance.unlearners import CHECKS, UnlearnerCase
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.training.recipe import Recipe
from audits.unlearning import UNLEARNERS, make_unlearner
from audits.unlearning.settings import rules
from tests.audits.unlearning.cases import (
    CLASSES,
    CONTROLS,
    FORGET,
    RECIPE,
    RETAIN,
    SETTINGS,
    build,
    points,
    run,
    same_state,
    trained,
)
from tests.cases.families import as_one, thinned


def test_every_registered_method_is_tested_here() -> None:
    assert set(UNLEARNERS) == set(SETTINGS)


def brief(name: str) -> dict[str, int]:
    """Return the settings by which a method takes few steps."""
    return {"iterations": 4} if name == "sfr_on" else {} if name in CONTROLS else {"epochs": 1}


@pytest.mark.parametrize("name", UNLEARNERS)
def test_every_method_keeps_to(name: str) -> None:
    method = make_unlearner(name, SETTINGS[name] | brief(name))
    for check in CHECKS:
        sets = points(FORGET, 1), points(RETAIN, 2)
        check(UnlearnerCase(method, trained(), *sets, replace(RECIPE, epochs=1), build))


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - {"identity"}))
def test_every_method_but_identity_moves_the_weights(name: str) -> None:
    model = trained()
    assert not same_state(model, run(name, model, **brief(name)))


@pytest.mark.parametrize("name", UNLEARNERS)
def test_another_seed_gives_another_result(name: str) -> None:
    model = trained()
    first = run(name, model, **brief(name))
    assert same_state(first, run(name, model.requires_grad_(False), **brief(name)))
    assert same_state(first, run(name, model, seed=5, **brief(name))) == (name == "identity")


@as_one("name", UNLEARNERS)
def test_flags_say_what_a_method_is(name: str) -> None:
    method = UNLEARNERS[name]
    assert method.name == name
    assert method.copies == (name == "identity")
    assert method.trains_from_scratch == (name == "retrain")


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - CONTROLS))
def test_a_run_that_diverges_is_reported(name: str) -> None:
    extreme = {"learning_rate": 1e30} | ({"clip_norm": 1e30} if name == "gradient_ascent" else {})
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        run(name, trained(), **extreme)


@pytest.mark.parametrize("name", UNLEARNERS)
def test_only_the_sets_that_a_method_says_it_reads_decide_its_result(name: str) -> None:
    model, method = trained(), make_unlearner(name, SETTINGS[name] | brief(name))
    forget, retain = points(FORGET, 1), points(RETAIN, 2)

    def result(forget: TensorSet, retain: TensorSet) -> nn.Module:
        return method.unlearn(model, forget, retain, seed=0, recipe=RECIPE, build=build)

    usual = result(forget, retain)
    assert same_state(usual, result(points(FORGET, 8), retain)) == (not method.reads_forget)
    assert same_state(usual, result(forget, points(RETAIN, 9))) == (not method.reads_retain)


@as_one("kind", ["forget", "retain"])
@as_one("name", UNLEARNERS)
def test_an_empty_set_is_refused_where_it_is_read_and_ignored_where_not(name: str, kind: str) -> None:
    method = make_unlearner(name, SETTINGS[name])
    sets = {"forget": points(FORGET, 1), "retain": points(RETAIN, 2)} | {kind: points(0, 3)}
    if getattr(method, f"reads_{kind}"):
        with pytest.raises(BadInput, match=f"{name} reads the {kind} set, which is empty"):
            method.unlearn(trained(), **sets, seed=0, recipe=RECIPE, build=build)
    else:
        found = method.unlearn(trained(), **sets, seed=0, recipe=RECIPE, build=build)
        assert not found.training


@pytest.mark.parametrize(("forgotten", "retained"), thinned([(1, 5), (1, 2), (3, 2), (9, 3)], [(1, 2), (9, 3)]))
@pytest.mark.parametrize("name", UNLEARNERS)
def test_sets_below_a_batch_serve_models_with_batch_norm_and_dropout(name: str, forgotten: int, retained: int) -> None:
    model = trained()
    method = make_unlearner(name, SETTINGS[name] | brief(name) | ({"batch_size": 64} if name not in CONTROLS else {}))
    found = method.unlearn(model, points(forgotten, 1), points(retained, 2), seed=0, recipe=RECIPE, build=build)
    assert same_state(model, found) == (name == "identity")


@pytest.mark.parametrize("name", UNLEARNERS)
def test_byte_images_serve_convolutional_models(name: str) -> None:
    kind = make_model("cnn", {"channels": [4], "hidden": 8, "dropout": 0.1})
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (9, 1, 8, 8), generator=generator, dtype=torch.uint8)
    data, recipe = TensorSet(images, torch.arange(9) % CLASSES), Recipe(epochs=1, batch_size=4)
    forget, retain = TensorSet(data.x[:3], data.y[:3]), TensorSet(data.x[3:], data.y[3:])
    model = kind.build((1, 8, 8), CLASSES, 0)
    found = make_unlearner(name, SETTINGS[name] | brief(name)).unlearn(
        model, forget, retain, seed=0, recipe=recipe, build=lambda seed: kind.build((1, 8, 8), CLASSES, seed)
    )
    assert same_state(model, found) == (name == "identity")
    assert images.dtype == torch.uint8


@pytest.mark.gpu
@pytest.mark.parametrize("name", UNLEARNERS)
def test_on_a_gpu_the_result_stays_there_and_no_generator_moves(name: str) -> None:
    forget, retain = (TensorSet(one.x.cuda(), one.y.cuda()) for one in (points(FORGET, 1), points(RETAIN, 2)))
    method, model = make_unlearner(name, SETTINGS[name]), trained().cuda()
    before = torch.cuda.get_rng_state(), torch.get_rng_state()
    found, again = (
        method.unlearn(model, forget, retain, seed=4, recipe=RECIPE, build=build).state_dict() for _ in range(2)
    )
    assert all(value.is_cuda for value in found.values())
    assert all(torch.allclose(value.double(), again[key].double(), atol=1e-5) for key, value in found.items())
    assert torch.equal(before[0], torch.cuda.get_rng_state()) and torch.equal(before[1], torch.get_rng_state())


REFUSED = {
    "above 0": (0, -1.0, float("nan")),
    "0 or more": (-1, float("inf")),
    "1 or more": (0, -3),
    "above 0, up to 1": (0.0, 1.01),
    "0 up to, but not including, 1": (1.0, -0.1),
}


RULED = [(name, setting, allowed.words) for name in UNLEARNERS for setting, allowed in rules(UNLEARNERS[name]).items()]


@as_one("name", UNLEARNERS)
def test_every_number_among_the_settings_says_what_it_may_be(name: str) -> None:
    method = make_unlearner(name, {})
    numbers = {field.name for field in fields(method) if type(getattr(method, field.name)) in (int, float)}
    assert numbers == set(rules(type(method)))


@as_one("name, setting, words", RULED)
def test_settings_that_cannot_work_are_refused_before_anything_is_trained(name: str, setting: str, words: str) -> None:
    for value in REFUSED[words]:
        wanted = f"allowed: {words}" if math.isfinite(value) else "it must be finite"
        with pytest.raises(BadInput, match=rf"^{name}\.{setting} is {value}; {wanted}$"):
            make_unlearner(name, {setting: value})

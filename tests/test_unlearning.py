"""Unlearning never touches what it is given, and each update rule is the written-out one in float64."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from slow_net import SlowAdam, SlowNet, SlowSGD, clipped, largest_difference, one_hot, softmax
from torch import nn
from unlearning_cases import (
    CLASSES,
    CONTROLS,
    FEATURES,
    FORGET,
    RECIPE,
    RETAIN,
    SETTINGS,
    Snapshot,
    build,
    joined,
    plain,
    points,
    run,
    same_state,
    trained,
)

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.seeds import derive_seed
from audits.training.loop import train_model
from audits.training.recipe import Recipe
from audits.unlearning import UNLEARNERS, Unlearner, make_unlearner
from audits.unlearning.distillation import divergence, teacher_logits
from audits.unlearning.settings import rules
from audits.unlearning.student import student_logits


def test_every_registered_method_is_tested_here() -> None:
    assert set(UNLEARNERS) == set(SETTINGS)


@pytest.mark.parametrize("training", [False, True], ids=["eval mode", "train mode"])
@pytest.mark.parametrize("trainable", [True, False], ids=["trainable", "frozen"])
@pytest.mark.parametrize("name", UNLEARNERS)
def test_the_given_model_is_left_bit_for_bit_as_it_was(name: str, trainable: bool, training: bool) -> None:
    model = trained()
    model(points(4, 9).x).sum().backward()
    model.requires_grad_(trainable).train(training)
    before = Snapshot(model)
    run(name, model)
    before.assert_unchanged()


@pytest.mark.parametrize("name", UNLEARNERS)
def test_the_given_sets_are_left_as_they_were(name: str) -> None:
    forget, retain = points(FORGET, 1), points(RETAIN, 2)
    method = make_unlearner(name, SETTINGS[name])
    method.unlearn(trained(), forget, retain, seed=0, recipe=RECIPE, build=build)
    assert torch.equal(forget.x, points(FORGET, 1).x) and torch.equal(retain.x, points(RETAIN, 2).x)
    assert forget.x.grad is None and retain.x.grad is None


@pytest.mark.parametrize("trainable", [True, False], ids=["trainable", "frozen"])
@pytest.mark.parametrize("name", UNLEARNERS)
def test_a_new_model_in_eval_mode_with_gradients_enabled_comes_back(name: str, trainable: bool) -> None:
    model = trained().requires_grad_(trainable)
    found = run(name, model)
    assert found is not model
    assert not any(module.training for module in found.modules())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in found.parameters())
    own = {value.data_ptr() for value in found.state_dict().values()}
    assert not own & {value.data_ptr() for value in model.state_dict().values()}


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - {"identity"}))
def test_every_method_but_identity_moves_the_weights(name: str) -> None:
    model = trained()
    assert not same_state(model, run(name, model))


@pytest.mark.parametrize("name", UNLEARNERS)
def test_results_depend_on_the_seed_and_not_on_the_global_generator(name: str) -> None:
    model = trained()
    torch.manual_seed(1)
    first = run(name, model)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    frozen = run(name, model.requires_grad_(False))
    assert torch.equal(before, torch.get_rng_state())
    assert same_state(first, frozen)
    assert same_state(first, run(name, model, seed=5)) == (name == "identity")


@pytest.mark.parametrize("name", UNLEARNERS)
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
    model, method = trained(), make_unlearner(name, SETTINGS[name])
    forget, retain = points(FORGET, 1), points(RETAIN, 2)

    def result(forget: TensorSet, retain: TensorSet) -> nn.Module:
        return method.unlearn(model, forget, retain, seed=0, recipe=RECIPE, build=build)

    usual = result(forget, retain)
    assert same_state(usual, result(points(FORGET, 8), retain)) == (not method.reads_forget)
    assert same_state(usual, result(forget, points(RETAIN, 9))) == (not method.reads_retain)


@pytest.mark.parametrize("kind", ["forget", "retain"])
@pytest.mark.parametrize("name", UNLEARNERS)
def test_an_empty_set_is_refused_where_it_is_read_and_ignored_where_not(name: str, kind: str) -> None:
    method = make_unlearner(name, SETTINGS[name])
    sets = {"forget": points(FORGET, 1), "retain": points(RETAIN, 2)} | {kind: points(0, 3)}
    if getattr(method, f"reads_{kind}"):
        with pytest.raises(BadInput, match=f"{name} reads the {kind} set, which is empty"):
            method.unlearn(trained(), **sets, seed=0, recipe=RECIPE, build=build)
    else:
        found = method.unlearn(trained(), **sets, seed=0, recipe=RECIPE, build=build)
        assert not found.training


@pytest.mark.parametrize(("forgotten", "retained"), [(1, 5), (1, 2), (3, 2), (9, 3)])
@pytest.mark.parametrize("name", UNLEARNERS)
def test_sets_below_a_batch_serve_models_with_batch_norm_and_dropout(name: str, forgotten: int, retained: int) -> None:
    model = trained()
    method = make_unlearner(name, SETTINGS[name] | ({"batch_size": 64} if name not in CONTROLS else {}))
    found = method.unlearn(model, points(forgotten, 1), points(retained, 2), seed=0, recipe=RECIPE, build=build)
    assert same_state(model, found) == (name == "identity")


@pytest.mark.parametrize("name", UNLEARNERS)
def test_byte_images_serve_convolutional_models(name: str) -> None:
    kind, generator = make_model("resnet18", {"width": 2}), torch.Generator().manual_seed(0)
    images = torch.randint(256, (9, 1, 8, 8), generator=generator, dtype=torch.uint8)
    data, recipe = TensorSet(images, torch.arange(9) % CLASSES), Recipe(epochs=1, batch_size=4)
    forget, retain = TensorSet(data.x[:3], data.y[:3]), TensorSet(data.x[3:], data.y[3:])
    model = kind.build((1, 8, 8), CLASSES, 0)
    short = {"iterations": 2} if name == "sfr_on" else {"epochs": 1} if name not in CONTROLS else {}
    found = make_unlearner(name, SETTINGS[name] | short).unlearn(
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


def test_a_lone_point_meets_the_running_statistics_of_batch_norm_and_leaves_them() -> None:
    model = make_model("mlp", {"hidden": [8], "batch_norm": True}).build((FEATURES,), CLASSES, 0).train()
    student_logits(model, points(9, 1).x)
    before, lone = copy.deepcopy(model.state_dict()), points(1, 2).x
    found = student_logits(model, lone)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert torch.equal(found, model.eval()(lone))


# ------------------------------------------------------------------------------------------------------ settings

REFUSED = {
    "above 0": (0, -1.0, float("nan")),
    "0 or more": (-1, float("inf")),
    "1 or more": (0, -3),
    "above 0, up to 1": (0.0, 1.01),
    "0 up to, but not, 1": (1.0, -0.1),
}
RULED = [(name, setting, allowed.words) for name in UNLEARNERS for setting, allowed in rules(UNLEARNERS[name]).items()]


@pytest.mark.parametrize("name", UNLEARNERS)
def test_every_number_among_the_settings_says_what_it_may_be(name: str) -> None:
    method = make_unlearner(name, {})
    numbers = {field.name for field in fields(method) if type(getattr(method, field.name)) in (int, float)}
    assert numbers == set(rules(type(method)))


@pytest.mark.parametrize(("name", "setting", "words"), RULED, ids=lambda part: part.replace(" ", "-"))
def test_settings_that_cannot_work_are_refused_before_anything_is_trained(name: str, setting: str, words: str) -> None:
    for value in REFUSED[words]:
        wanted = f"allowed: {words}" if math.isfinite(value) else "it must be finite"
        with pytest.raises(BadInput, match=rf"^{name}\.{setting} is {value}; {wanted}$"):
            make_unlearner(name, {setting: value})


def test_settings_become_the_recipe_that_they_describe() -> None:
    method = make_unlearner("finetune", {"learning_rate": 0.3, "optimizer": "adam", "schedule": "constant"})
    recipe = method.tuning(clip_norm=2.0)
    assert (recipe.learning_rate, recipe.optimizer, recipe.schedule) == (0.3, "adam", "constant")
    assert (recipe.batch_size, recipe.weight_decay, recipe.clip_norm) == (64, 5e-4, 2.0)


# ----------------------------------------------------------------------------------------------- gradient ascent


def slow_ascent(model: nn.Module, settings: dict[str, Any], seed: int) -> SlowNet:
    """Return the network after gradient ascent with an update a batch and a cosine step an epoch, in NumPy."""
    net, data = SlowNet(model), points(FORGET, 1, torch.float64)
    x, y = data.x.numpy(), data.y.numpy()
    optimizer = SlowSGD(net, settings["momentum"], settings["weight_decay"])
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))
    for epoch in range(settings["epochs"]):
        rate = settings["learning_rate"] * (1 + math.cos(math.pi * epoch / settings["epochs"])) / 2
        shuffled = torch.randperm(FORGET, generator=order).numpy()
        for rows in (shuffled[:4], shuffled[4:8], shuffled[8:]):
            ascent = [-part for part in net.gradients(x[rows], net.entropy_gradient(x[rows], y[rows]))]
            optimizer.step(clipped(ascent, settings["clip_norm"]), rate)
    return net


@pytest.mark.parametrize(
    "change",
    [
        {"clip_norm": 1e9, "momentum": 0.0, "weight_decay": 0.0},
        {"clip_norm": 0.1, "momentum": 0.0, "weight_decay": 0.0},
        {"clip_norm": 1e9, "momentum": 0.9, "weight_decay": 0.05},
        {"clip_norm": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "epochs": 5},
    ],
    ids=["bare", "clip", "momentum and decay", "all"],
)
def test_gradient_ascent_is_the_written_out_update(change: dict[str, Any]) -> None:
    settings = {"learning_rate": 0.05, "epochs": 3, "batch_size": 4} | change
    model = plain()
    assert largest_difference(run("gradient_ascent", model, **settings), slow_ascent(model, settings, seed=4)) < 1e-10


def test_parity_steps_the_cosine_a_batch_and_so_differs() -> None:
    model = plain()
    ours, parity = (run("gradient_ascent", model, schedule_per_batch=flag) for flag in (False, True))
    assert not same_state(ours, parity)


def test_with_one_batch_an_epoch_both_schedules_agree() -> None:
    model = plain()
    ours, parity = (run("gradient_ascent", model, batch_size=64, schedule_per_batch=flag) for flag in (False, True))
    assert same_state(ours, parity)


def test_gradient_ascent_of_no_epochs_is_identity() -> None:
    model = trained()
    assert same_state(run("gradient_ascent", model, epochs=0), run("identity", model))
    assert same_state(run("identity", model), model)


def test_gradient_ascent_raises_the_loss_on_the_forget_set() -> None:
    model, forget = trained(), points(FORGET, 1)
    found = run("gradient_ascent", model)
    before, after = (F.cross_entropy(each(forget.x), forget.y).item() for each in (model, found))
    assert after > before + 0.01


def test_gradient_ascent_freezes_batch_norm_statistics_but_not_its_weights() -> None:
    model = trained()
    found = run("gradient_ascent", model, clip_norm=10.0)
    for old, new in zip(model.modules(), found.modules(), strict=True):
        if isinstance(old, nn.BatchNorm1d):
            assert torch.equal(old.running_mean, new.running_mean) and torch.equal(old.running_var, new.running_var)
            assert old.num_batches_tracked == new.num_batches_tracked
            assert not torch.equal(old.weight, new.weight)


def test_finetuning_moves_batch_norm_statistics() -> None:
    model = trained()
    found = run("finetune", model)
    assert not torch.equal(model.get_buffer("3.running_mean"), found.get_buffer("3.running_mean"))


# --------------------------------------------------------------------------------------------------- fine-tuning


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_finetuning_is_the_written_out_update(schedule: str) -> None:
    model, data = plain(), points(RETAIN, 2, torch.float64)
    settings = {"learning_rate": 0.05, "epochs": 4, "batch_size": 8, "momentum": 0.9, "weight_decay": 0.01}
    net = SlowNet(model)
    optimizer = SlowSGD(net, 0.9, 0.01)
    order = torch.Generator().manual_seed(derive_seed(4, "order"))
    x, y = data.x.numpy(), data.y.numpy()
    for epoch in range(4):
        rate = 0.05 * ((1 + math.cos(math.pi * epoch / 4)) / 2 if schedule == "cosine" else 1.0)
        shuffled = torch.randperm(RETAIN, generator=order).numpy()
        for rows in (shuffled[:8], shuffled[8:16], shuffled[16:]):
            optimizer.step(net.gradients(x[rows], net.entropy_gradient(x[rows], y[rows])), rate)
    assert largest_difference(run("finetune", model, schedule=schedule, **settings), net) < 1e-10


# --------------------------------------------------------------------------------------------------------- SCRUB


@pytest.mark.parametrize("temperature", [1.0, 4.0, 0.5])
def test_the_divergence_is_kl_of_original_and_student_by_definition(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(7, 5, generator=generator, dtype=torch.float64) * 3 for _ in range(2))
    total = 0.0
    for s, t in zip(student.tolist(), teacher.tolist(), strict=True):
        p = [math.exp(value / temperature) for value in t]
        q = [math.exp(value / temperature) for value in s]
        p, q = [value / sum(p) for value in p], [value / sum(q) for value in q]
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    wanted = total / 7 * temperature**2
    assert abs(divergence(student, teacher, temperature).item() - wanted) < 1e-12
    assert divergence(teacher, teacher, temperature).abs().item() < 1e-12


def test_teacher_logits_are_the_floats_of_the_model_in_eval_mode() -> None:
    model = trained()
    data = points(RETAIN, 2)
    wanted = model(data.x).detach()
    model.train()
    found = teacher_logits(model, data)
    assert found.dtype == torch.float32 and not found.requires_grad
    assert torch.equal(found, wanted)
    assert not torch.equal(found, found.round())
    assert model.training


def slow_scrub(model: nn.Module, settings: dict[str, Any], seed: int) -> SlowNet:
    """Return the network after SCRUB, in NumPy: ∂KL_T·T²/∂logits = T·(softmax(student/T) − softmax(teacher/T))."""
    net, teacher = SlowNet(model), SlowNet(model)
    forget, retain = points(FORGET, 1, torch.float64), points(RETAIN, 2, torch.float64)
    temperature, decay = settings["temperature"], settings["weight_decay"]
    optimizer: SlowAdam | SlowSGD = SlowAdam(net, decay)
    if settings["optimizer"] == "sgd":
        optimizer = SlowSGD(net, settings["momentum"], decay)
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))

    def away(x: np.ndarray) -> np.ndarray:
        gap = softmax(net.logits(x) / temperature) - softmax(teacher.logits(x) / temperature)
        return temperature * gap / len(x)

    for epoch in range(settings["epochs"]):
        if epoch < settings["ascent_epochs"]:
            shuffled = torch.randperm(FORGET, generator=order).numpy()
            for rows in (shuffled[:4], shuffled[4:8], shuffled[8:]):
                x = forget.x.numpy()[rows]
                optimizer.step(net.gradients(x, -away(x)), settings["learning_rate"])
        shuffled = torch.randperm(RETAIN, generator=order).numpy()
        for rows in (shuffled[:8], shuffled[8:16], shuffled[16:]):
            x, y = retain.x.numpy()[rows], retain.y.numpy()[rows]
            entropy = (softmax(net.logits(x)) - one_hot(y, CLASSES)) / len(x)
            at_logits = settings["gamma"] * entropy + settings["alpha"] * away(x)
            optimizer.step(net.gradients(x, at_logits), settings["learning_rate"])
    return net


@pytest.mark.parametrize(
    "change",
    [{}, {"optimizer": "sgd", "learning_rate": 0.05}, {"alpha": 0.7, "temperature": 1.5}, {"ascent_epochs": 0}],
    ids=["adam", "sgd", "strong teacher", "no ascent"],
)
def test_a_run_of_scrub_is_the_written_out_one(change: dict[str, Any]) -> None:
    settings = {
        "learning_rate": 0.01,
        "epochs": 4,
        "ascent_epochs": 2,
        "gamma": 0.99,
        "alpha": 0.001,
        "temperature": 4.0,
        "batch_size": 8,
        "forget_batch_size": 4,
        "optimizer": "adam",
        "momentum": 0.9,
        "weight_decay": 5e-4,
    } | change
    # Student and teacher agree at the start, so the first ascent follows the weight decay alone; without it Adam would
    # divide rounding by rounding and no two implementations would agree.
    model = plain()
    assert largest_difference(run("scrub", model, **settings), slow_scrub(model, settings, seed=4)) < 1e-10


# ------------------------------------------------------------------------------------------------------- retrain


def test_retraining_without_a_forget_set_reproduces_the_target_and_ignores_the_given_weights() -> None:
    data = joined(points(FORGET, 1), points(RETAIN, 2))
    nothing = TensorSet(data.x[:0], data.y[:0])
    target = train_model(build, data, RECIPE, 17)
    retrain = make_unlearner("retrain", {})
    for given in (target, build(99)):
        found = retrain.unlearn(given, nothing, data, seed=17, recipe=RECIPE, build=build)
        assert same_state(found, target)


@pytest.mark.parametrize("missing", ["recipe", "build"])
def test_retraining_needs_recipe_and_architecture(missing: str) -> None:
    given: dict[str, Recipe | Callable[[int], nn.Module]] = {"recipe": RECIPE, "build": build}
    del given[missing]
    with pytest.raises(BadInput, match="retrain needs"):
        make_unlearner("retrain", {}).unlearn(trained(), points(3, 1), points(9, 2), seed=0, **given)


def test_unknown_methods_are_explained() -> None:
    with pytest.raises(BadInput, match="did you mean 'scrub'"):
        make_unlearner("srcub", {})


def test_a_method_is_filed_once() -> None:
    from audits.unlearning.base import unlearner

    with pytest.raises(RuntimeError, match="registered twice"):
        unlearner("scrub")(type("Again", (Unlearner,), {}))

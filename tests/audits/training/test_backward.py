"""Steps that are recorded do what steps that are not recorded do, and are recorded only where that holds."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.gpu import settle
from audits.models import MODELS, make_model
from audits.models.base import Architecture
from audits.models.own import OwnArchitecture
from audits.training import backward as file
from audits.training.backward import WARM, Backward, Repeated
from audits.training.fit import fit, train_model
from audits.training.recipe import Recipe
from audits.training.team import Team
from audits.training.transfer import standardised
from audits.unlearning import UNLEARNERS, make_unlearner
from benchmarks.pretended import pretended
from tests.audits.test_contracts_models import CLASSES, SMALL
from tests.audits.test_on_cuda import on, points_of
from tests.audits.unlearning import cases
from tests.cases.families import thinned

GPU = "cuda"


class Spy:
    """A recording that plays by computing into the tensors of its first play, as a CUDA graph does into its own."""

    made: list[Spy]

    def __init__(self, work: file.Work, parameters: Sequence[nn.Parameter], batch: Sequence[torch.Tensor]) -> None:
        self.work, self.parameters = work, parameters
        self.batch = [each.clone() for each in batch]
        self.own: list[torch.Tensor | None] = []
        self.plays = 0
        self.made.append(self)

    def play(self, batch: Sequence[torch.Tensor]) -> torch.Tensor | None:
        self.plays += 1
        for own, given in zip(self.batch, batch, strict=True):
            own.copy_(given)
        result = self.work(*self.batch)
        found = [result, *(parameter.grad for parameter in self.parameters)]
        self.own = self.own or found
        for own, new in zip(self.own, found, strict=True):
            if own is not None and new is not None:
                own.copy_(new)
        for parameter, gradient in zip(self.parameters, self.own[1:], strict=True):
            parameter.grad = gradient
        return self.own[0]


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> list[Spy]:
    """Everything is recorded by spies, on the CPU too."""
    Spy.made = []
    monkeypatch.setattr(file, "record", Spy)
    monkeypatch.setattr(file, "recordable", lambda model, team: True)
    return Spy.made


def images(count: int) -> TensorSet:
    generator = torch.Generator().manual_seed(2)
    return TensorSet(torch.rand(count, 1, 8, 8, generator=generator), torch.arange(count) % CLASSES)


def small(seed: int) -> nn.Module:
    return make_model("mlp", {"hidden": [6], "batch_norm": True}).build((1, 8, 8), CLASSES, seed)


RECIPE = Recipe(epochs=4, batch_size=8, optimizer="sgd", schedule="cosine", clip_norm=0.5, augment_shift=1, flip=True)


def test_a_training_by_recordings_is_that_without(spied: list[Spy], monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = fit(small(1), images(21), RECIPE, seed=3)
    assert sorted(spy.batch[0].shape[0] for spy in spied) == [5, 8]  # the last batch of an epoch is smaller
    assert {len(spy.batch[0]): spy.plays for spy in spied} == {8: 8 - WARM, 5: 4 - WARM}
    monkeypatch.setattr(file, "recordable", lambda model, team: False)
    plain = fit(small(1), images(21), RECIPE, seed=3)
    for name, value in plain.state_dict().items():
        assert torch.equal(recorded.state_dict()[name], value), name


@pytest.mark.parametrize("name", thinned(UNLEARNERS, ("identity", "finetune", "scrub", "salun", "sfr_on")))
def test_a_method_by_recordings_is_that_without(name: str, spied: list[Spy], monkeypatch: pytest.MonkeyPatch) -> None:
    original = cases.trained()
    spied.clear()

    def unlearned() -> dict[str, torch.Tensor]:
        sets = cases.points(cases.FORGET, 1), cases.points(cases.RETAIN, 2)
        method = make_unlearner(name, cases.SETTINGS[name])
        found = method.unlearn(copy.deepcopy(original), *sets, seed=4, recipe=cases.RECIPE, build=cases.build)
        return found.state_dict()

    recorded = unlearned()
    assert (name == "identity") == (not any(spy.plays for spy in spied))
    monkeypatch.setattr(file, "recordable", lambda model, team: False)
    for field, value in unlearned().items():
        assert torch.equal(recorded[field], value), field


def test_gradients_are_put_back_where_something_else_took_them_away(spied: list[Spy]) -> None:
    model = small(1)
    backward = Backward(model, lambda x, y: F.cross_entropy(model(x), y))
    data = images(8)
    for _ in range(WARM + 1):
        loss = backward(data.x, data.y)
    wanted = [each.grad.clone() for each in model.parameters() if each.grad is not None]
    model.zero_grad(set_to_none=True)
    assert torch.equal(backward(data.x, data.y), loss)
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        assert parameter.grad is not None and torch.equal(parameter.grad, gradient)


def test_only_what_its_architecture_lets_and_nobody_watches_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Team()
    assert not file.recordable(small(1), alone)  # on a CPU
    with pretended():
        model = small(1).to(GPU)
        assert file.recordable(model, alone)
        assert not file.recordable(model, Team(0, 2))
        assert not file.recordable(nn.Linear(2, 2).to(GPU), alone)  # a user's own module
        with monkeypatch.context() as patch:
            patch.setattr(file.gpu, "recorded", False)
            assert not file.recordable(model, alone)
        next(model.parameters()).register_post_accumulate_grad_hook(lambda parameter: None)
        assert not file.recordable(model, alone)
        assert not file.recordable(standardised(small(1).to(GPU), (0.5,), (0.5,)), alone)


@pytest.mark.parametrize("name", thinned(MODELS, ("cnn", "mlp")))
def test_what_is_recorded_waits_for_nothing(name: str) -> None:
    """On a pretended GPU: a real one refuses to record what waits, and is of no use afterwards."""
    with pretended() as counts:
        model = make_model(name, SMALL[name].settings).build(SMALL[name].shape, CLASSES, 1).to(GPU)
        data = on(GPU, points_of(name, 22))
        backward = Backward(model, lambda x, y: F.cross_entropy(model(x), y))
        backward.repeated.work(data.x, data.y)
        counts.clear()
        backward.repeated.work(data.x, data.y)
    assert model.recordable == (not counts.syncs)


def test_a_user_s_own_architecture_is_not_recorded() -> None:
    assert not OwnArchitecture.recordable and not Architecture.recordable


# ------------------------------------------------------------------------------------------------------------ on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_training_on_a_gpu_has_the_bits_of_a_plain_one(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle()
    pictures = len(SMALL[name].shape) == 3
    recipe = Recipe(
        epochs=5, batch_size=8, learning_rate=1e-3, dtype=dtype, augment_shift=int(pictures), flip=pictures,
        clip_norm=1.0, schedule="cosine",
    )  # fmt: skip

    def trained() -> nn.Module:
        def build(seed: int) -> nn.Module:
            return make_model(name, SMALL[name].settings).build(SMALL[name].shape, CLASSES, seed)

        return train_model(build, on(GPU, points_of(name, 22)), recipe, seed=3)

    made: list[file.Graph] = []

    def noted(*arguments: object) -> file.Graph:
        made.append(file.Graph(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(file, "record", noted)
    recorded = trained()
    assert len(made) == 2 * MODELS[name].recordable
    monkeypatch.setattr(file, "recordable", lambda model, team: False)
    for field, value in trained().state_dict().items():
        assert torch.equal(recorded.state_dict()[field], value), field


@pytest.mark.gpu
@pytest.mark.parametrize("name", UNLEARNERS)
def test_a_recorded_method_on_a_gpu_has_the_bits_of_a_plain_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settle()
    original = cases.trained().to(GPU)

    def unlearned() -> dict[str, torch.Tensor]:
        sets = on(GPU, cases.points(cases.FORGET, 1)), on(GPU, cases.points(cases.RETAIN, 2))
        found = make_unlearner(name, cases.SETTINGS[name]).unlearn(
            copy.deepcopy(original), *sets, seed=4, recipe=cases.RECIPE, build=lambda seed: cases.build(seed).to(GPU)
        )
        return found.state_dict()

    recorded = unlearned()
    monkeypatch.setattr(file, "recordable", lambda model, team: False)
    for field, value in unlearned().items():
        assert torch.equal(recorded[field], value), field


@pytest.mark.gpu
def test_nothing_waits_in_a_recorded_epoch() -> None:
    model = make_model("mlp", {"hidden": [6]}).build((1, 8, 8), CLASSES, 1).to(GPU)
    data = on(GPU, images(8))
    backward = Backward(model, lambda x, y: F.cross_entropy(model(x), y))
    for _ in range(WARM + 1):
        backward(data.x, data.y)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            backward(data.x, data.y)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_work_without_a_result_is_repeated(spied: list[Spy]) -> None:
    total, one = torch.zeros(()), torch.ones(())
    add = Repeated(lambda: total.add_(one) and None, small(1))
    for _ in range(5):
        add()
    assert total == 5


def test_what_cannot_be_recorded_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []

    def refused(*arguments: object) -> file.Recording:
        tried.append(1)
        raise file.NotRecorded("the stream was busy")

    monkeypatch.setattr(file, "record", refused)
    monkeypatch.setattr(file, "recordable", lambda model, team: True)
    without = fit(small(1), images(21), RECIPE, seed=3)
    assert tried == [1]
    assert [each.getMessage() for each in caplog.records] == ["training: steps are not recorded: the stream was busy"]
    monkeypatch.setattr(file, "recordable", lambda model, team: False)
    for name, value in fit(small(1), images(21), RECIPE, seed=3).state_dict().items():
        assert torch.equal(without.state_dict()[name], value), name


def test_recordings_are_gone_when_the_training_is_done(spied: list[Spy]) -> None:
    """Without waiting to be collected: a GPU's memory that is freed while another is recorded would end that."""
    gc.disable()
    try:
        fit(small(1), images(21), RECIPE, seed=3)
        left = [weakref.ref(spy) for spy in spied]
        spied.clear()
        assert left and not any(each() for each in left)
    finally:
        gc.enable()


@pytest.mark.gpu
def test_a_recording_that_breaks_off_leaves_the_device_as_it_was() -> None:
    settle()

    class Waiting(nn.Module):
        """Waits for the device once it is recorded, which ends a recording."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, CLASSES))
            self.recordable = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.layers(x.flatten(1))
            return found * float(found.detach().isfinite().all())

    def trained(allowed: bool) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        model = Waiting().to(GPU)
        model.recordable = allowed
        return fit(model, on(GPU, images(21)), RECIPE, seed=3).state_dict()

    stream = torch.cuda.current_stream()
    broken = trained(True)
    assert torch.cuda.current_stream() == stream
    for field, value in trained(False).items():
        assert torch.equal(broken[field], value), field


@pytest.mark.gpu
def test_recordings_stand_the_collection_of_others() -> None:
    """What waits to be collected holds recordings of trainings before, as a worker's many models leave them."""
    settle()
    often = gc.get_threshold()
    gc.set_threshold(1, 1, 1)  # wherever anything is made, so also while a step is recorded if that is not prevented
    try:
        for seed in range(5):
            cycle: list[object] = [fit_kept(seed)]
            cycle.append(cycle)
    finally:
        gc.set_threshold(*often)


def fit_kept(seed: int) -> Backward:
    """Train a little and return what holds the recordings."""
    model = make_model("mlp", {"hidden": [6], "dropout": 0.5}).build((1, 8, 8), CLASSES, seed).to(GPU)
    data = on(GPU, images(8))
    backward = Backward(model, lambda x, y: F.cross_entropy(model(x), y))
    for _ in range(WARM + 2):
        backward(data.x, data.y)
    assert backward.repeated.recordings
    return backward

"""Images that are decoded batch by batch give the bits of images in memory, and never stand in memory as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from audits.data import undecoded
from audits.data.dataset import IMAGE_RANGE, Dataset
from audits.data.image_files import ImageFiles
from audits.data.tensors import TensorSet
from audits.data.undecoded import Files, Undecoded
from audits.models import make_model
from audits.training.fit import train_model
from audits.training.loop import accuracy
from audits.training.recipe import Recipe
from audits.uniqueness.checkpoints import Watched
from audits.unlearning import UNLEARNERS, make_unlearner
from audits.unlearning.mixture import mixed
from benchmarks.pretended import pretended
from tests.cases.families import thinned

POINTS, CLASSES, SHAPE = 30, 3, (1, 8, 8)
RECIPE = Recipe(learning_rate=0.01, epochs=2, batch_size=8, augment_shift=1, flip=True)
ARCHITECTURE = make_model("cnn", {})


def decode(file: Path, shape: tuple[int, ...], content: bytes | None) -> np.ndarray:
    """Return the image of a file that holds its raw bytes."""
    return np.frombuffer(file.read_bytes(), np.uint8).reshape(shape)


@pytest.fixture
def images(tmp_path: Path) -> Dataset:
    """Random images, each in a file of its own."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (POINTS, *SHAPE), dtype=np.uint8)
    names = tuple(f"{point}.raw" for point in range(POINTS))
    for name, image in zip(names, pixels, strict=True):
        (tmp_path / name).write_bytes(image.tobytes())
    files = ImageFiles(tmp_path, names, SHAPE, decode)
    return Dataset("raw", files, np.arange(POINTS) % CLASSES, ("a", "b", "c"), IMAGE_RANGE, fingerprint="raw")


def both_ways(images: Dataset, rows: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[TensorSet, TensorSet]:
    """Return the same points as a tensor and undecoded."""
    whole = images.tensors(rows)
    with monkeypatch.context() as patch:
        patch.setattr(undecoded, "SHARE", 0.0)
        waiting = images.tensors(rows)
    assert isinstance(whole.x, torch.Tensor) and isinstance(waiting.x, Undecoded)
    return whole, waiting


def build(seed: int) -> torch.nn.Module:
    return ARCHITECTURE.build(SHAPE, CLASSES, seed)


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([value.flatten() for value in model.state_dict().values()])


def test_rows_are_those_of_the_tensor(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, waiting = both_ways(images, [7, 3, 3, 29, 0], monkeypatch)
    for rows in (torch.tensor([4, 0, 2]), slice(1, 4), slice(None), torch.tensor([], dtype=torch.int64)):
        for ours, theirs in zip(waiting.batch(rows), whole.batch(rows), strict=True):
            assert torch.equal(ours, theirs) and ours.dtype == theirs.dtype
    assert torch.equal(waiting.all()[0], whole.all()[0])
    assert [len(part) for part in waiting.x.split(2)] == [2, 2, 1]


def test_batches_ahead_are_those_that_are_asked_for(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, waiting = both_ways(images, list(range(20)), monkeypatch)
    parts = list(torch.randperm(20, generator=torch.Generator().manual_seed(0)).split(3))
    for first in (0, 4):
        left = parts[first:]
        for ours, theirs, part in zip(waiting.batches(left), whole.batches(left), left, strict=True):
            for one, other, third in zip(ours, theirs, whole.batch(part), strict=True):
                assert torch.equal(one, other) and torch.equal(one, third) and one.dtype == other.dtype


def test_batches_reach_a_gpu_and_no_step_waits(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undecoded, "SHARE", 0.0)
    monkeypatch.setattr(undecoded, "memory", lambda device: 2**30)
    parts = torch.arange(20).split(3)
    here = list(images.tensors(range(20)).batches(parts))
    with pretended() as counts:
        found = list(images.tensors(range(20), "cuda").batches(parts))
        assert not counts.syncs
        for ours, theirs in zip(found, here, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert one.device.type == "cuda" and torch.equal(one.cpu(), other)


def test_labels_are_those_of_their_turn(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in both_ways(images, list(range(6)), monkeypatch):
        found = data.batches(torch.arange(6).split(2))
        first = next(found)[1]
        data.y.add_(1)
        assert [y.tolist() for y in (first, next(found)[1], next(found)[1])] == [[0, 1], [3, 1], [2, 3]]


def test_a_watched_set_tells_rows_in_their_turn(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in both_ways(images, list(range(6)), monkeypatch):
        told: list[list[int]] = []
        found = Watched(data.x, data.y, lambda rows, told=told: told.append(rows.tolist())).batches(
            torch.arange(6).split(2)
        )
        for number in range(3):
            assert len(told) == number
            next(found)
        assert told == [[0, 1], [2, 3], [4, 5]]


def test_sets_are_joined_undecoded_also_with_tensors(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    first, waiting = both_ways(images, [5, 1, 9], monkeypatch)
    second, other = both_ways(images, [2, 8], monkeypatch)
    rows = torch.tensor([4, 1, 3, 0, 1])
    for pair in ((waiting, other), (waiting, second), (first, other)):
        joined = mixed(*pair)
        assert isinstance(joined.x, Undecoded)
        assert torch.equal(joined.batch(rows)[0], mixed(first, second).batch(rows)[0])
        assert torch.equal(mixed(joined, second).all()[0], mixed(mixed(first, second), second).all()[0])
    with pytest.raises(TypeError):
        torch.stack([waiting.x, other.x])


def test_training_gives_equal_bits_and_decodes_a_batch_at_a_time(
    images: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, waiting = both_ways(images, list(range(20)), monkeypatch)
    decoded: list[int] = []
    inner = Files.begin
    monkeypatch.setattr(Files, "begin", lambda self, *asked: decoded.append(len(asked[0])) or inner(self, *asked))
    models = [train_model(build, points, RECIPE, seed=3) for points in (whole, waiting)]
    assert torch.equal(weights(models[0]), weights(models[1]))
    assert max(decoded) == RECIPE.batch_size and sum(decoded) == RECIPE.epochs * 20
    assert accuracy(models[0], whole) == accuracy(models[0], waiting)


@pytest.mark.parametrize("name", thinned(UNLEARNERS, ("retrain", "finetune", "bad_teacher", "sfr_on")))
def test_every_method_gives_equal_bits(name: str, images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    forget, retain = (both_ways(images, rows, monkeypatch) for rows in (list(range(6)), list(range(6, 20))))
    model = train_model(build, images.tensors(range(20)), RECIPE, seed=3)
    settings = {"epochs": 2, "iterations": 3}
    known = {field: value for field, value in settings.items() if field in UNLEARNERS[name].__dataclass_fields__}
    method = make_unlearner(name, known)
    found = [
        weights(method.unlearn(model, of_forget, of_retain, seed=1, recipe=RECIPE, build=build))
        for of_forget, of_retain in ((forget[0], retain[0]), (forget[1], retain[1]), (forget[0], retain[1]))
    ]
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_only_files_that_take_much_memory_are_left_undecoded(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    size = int(np.prod(SHAPE))
    monkeypatch.setattr(undecoded, "memory", lambda device: 40 * size)
    assert isinstance(images.tensors(range(10)).x, torch.Tensor)
    assert isinstance(images.tensors(range(11)).x, Undecoded)
    held = Dataset("held", images.inputs[:], images.labels, images.classes, IMAGE_RANGE)
    assert isinstance(held.tensors().x, torch.Tensor)


def test_memory_is_that_of_this_machine() -> None:
    assert undecoded.memory("cpu") > 2**28

"""``recipe.random_crop``: trainings on views of images at full size, drawn anew in each epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from audits.data import undecoded
from audits.data.catalogue import describe, load
from audits.data.dataset import Dataset
from audits.data.views import Views
from audits.errors import BadInput
from audits.models import make_model
from audits.seeds import Purpose, derive_seed
from audits.training.fit import train_model
from audits.training.recipe import Recipe
from orchestrator.engine.plan.fits import check_build
from orchestrator.engine.plan.sections import Model
from tests.audits.data.test_image_shards import packed
from tests.audits.data.test_imagenet import write_imagenet
from tests.cases.families import as_one
from tests.cases.small_data_sets import small_dataset

NAME = "imagenet?size=8"
RECIPE = Recipe(learning_rate=0.01, epochs=2, batch_size=5, random_crop=0.3, flip=True)
ROWS = range(1, 12)


@pytest.fixture
def images(tmp_path: Path) -> Dataset:
    """Twelve images of three classes."""
    return load(NAME, write_imagenet(tmp_path / "ilsvrc"))


def weights(data: Dataset, recipe: Recipe) -> torch.Tensor:
    """Return the weights of a model trained on all images but the first."""
    architecture = make_model("cnn", {})
    model = train_model(lambda seed: architecture.build(data.shape, 3, seed), data.tensors(ROWS), recipe, seed=5)
    return torch.cat([value.flatten() for value in model.state_dict().values()])


def test_bits_depend_on_no_place_of_the_images(
    images: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = weights(images, RECIPE)
    shards = load(f"shards:{packed(NAME, tmp_path / 'ilsvrc', tmp_path / 'shards')}")
    assert torch.equal(weights(shards, RECIPE), expected)
    monkeypatch.setattr(undecoded, "SHARE", 0.0)
    assert torch.equal(weights(images, RECIPE), expected)
    for other in (Recipe(**vars(RECIPE) | {"random_crop": None}), Recipe(**vars(RECIPE) | {"random_crop": 0.5})):
        assert not torch.equal(weights(images, other), expected)


def test_each_point_is_seen_once_an_epoch_as_its_seed_says(images: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Views, int]] = []
    plain = Views.image
    monkeypatch.setattr(Views, "image", lambda self, given, row: seen.append((self, row)) or plain(self, given, row))
    weights(images, RECIPE)
    seed = derive_seed(derive_seed(5, Purpose.FIT), "views")
    expected = [(Views(seed, epoch, 0.3, True), row) for epoch in range(2) for row in ROWS]
    assert sorted(seen, key=lambda view: (view[0].epoch, view[1])) == expected


def test_images_that_are_held_scaled_are_refused(images: Dataset) -> None:
    data = small_dataset()
    model = make_model("mlp", {"hidden": [4]})
    with pytest.raises(BadInput, match="needs images at full size"):
        train_model(lambda seed: model.build(data.shape, 2, seed), data.tensors(), RECIPE, seed=0)
    with pytest.raises(BadInput, match="needs images at full size, but fashion14 is held scaled") as caught:
        check_build(Model(name="cnn"), RECIPE, describe("fashion14"), "")
    assert "\n" not in str(caught.value)
    check_build(Model(name="cnn"), RECIPE, describe(NAME, images.inputs.root), "")  # type: ignore[union-attr]


@as_one("share", [0.0, -0.1, 1.1, float("nan")])
def test_shares_outside_of_an_image_are_refused(share: float) -> None:
    with pytest.raises(BadInput, match="random_crop"):
        Recipe(random_crop=share)


def test_private_trainings_crop_nothing() -> None:
    with pytest.raises(BadInput, match="random_crop"):
        Recipe(random_crop=0.5, noise_multiplier=1.0, max_grad_norm=1.0)

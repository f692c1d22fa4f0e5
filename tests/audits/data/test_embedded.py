"""The data sets that need no file of the user's: fashion14, digits, toy2d."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from audits.data import toy2d
from audits.data.catalogue import Dataset, describe, load
from audits.data.fashion14 import FINGERPRINT, make_fashion14
from audits.data.idx import read_parts
from audits.data.shards import unpack
from audits.data.source import SYSTEM_DATASETS
from audits.errors import BadInput
from tests.cases.small_data_sets import write_idx_set

ORIGINAL = SYSTEM_DATASETS / "fashion-mnist"
needs_original = pytest.mark.skipif(
    not (ORIGINAL / "train-images-idx3-ubyte.gz").exists(),
    reason="the original images (Debian's dataset-fashion-mnist) are not on this machine",
)


@pytest.fixture(scope="module")
def fashion14() -> Dataset:
    return load("fashion14")


# fashion14


def test_fashion14_has_7000_images_of_each_of_10_classes(fashion14: Dataset) -> None:
    assert fashion14.inputs.shape == (70_000, 1, 14, 14)
    assert np.bincount(fashion14.labels).tolist() == [7_000] * 10
    assert len(fashion14.classes) == 10


def test_fashion14_is_the_file_of_this_version(fashion14: Dataset) -> None:
    assert fashion14.fingerprint == FINGERPRINT == "58c015d6fa527ae7ab14276c8a633d97935bdc20ba2d58a9a48b5d82d424b65f"


def test_descriptions_agree_with_what_is_read(fashion14: Dataset) -> None:
    for dataset in (fashion14, load("digits"), load("toy2d")):
        facts = describe(dataset.name)
        assert facts.present
        assert (facts.points, facts.shape, facts.classes) == (len(dataset), dataset.shape, dataset.classes)
        assert facts.value_range == dataset.value_range


@needs_original
def test_fashion14_is_the_original_averaged(fashion14: Dataset) -> None:
    images, labels = read_parts(ORIGINAL)
    rows = np.random.default_rng(0).choice(70_000, 500, replace=False)
    for row in rows:
        for top, left in ((0, 0), (3, 8), (7, 5), (13, 13)):
            mean = images[row, 0, 2 * top : 2 * top + 2, 2 * left : 2 * left + 2].astype(float).mean()
            assert fashion14.inputs[row, 0, top, left] == math.floor(mean + 0.5)
    assert np.array_equal(fashion14.labels, labels)


@needs_original
@pytest.mark.slow
def test_the_embedded_file_is_made_from_the_original(fashion14: Dataset) -> None:
    again = unpack("again", [make_fashion14(ORIGINAL)], "memory")
    assert again.fingerprint == fashion14.fingerprint


def test_fashion14_cannot_be_made_from_other_files(tmp_path: Path) -> None:
    write_idx_set(tmp_path / "other")
    with pytest.raises(BadInput, match="not the files of Fashion-MNIST"):
        make_fashion14(tmp_path / "other")


@needs_original
def test_the_originals_averaged_are_the_same_data_set(fashion14: Dataset) -> None:
    assert load("fashion-mnist?average=2").fingerprint == fashion14.fingerprint
    assert describe("fashion-mnist?average=2").shape == (1, 14, 14)


# digits and toy2d


def test_digits_span_the_grey_values() -> None:
    digits = load("digits")
    assert digits.inputs.shape == (1797, 1, 8, 8)
    assert (digits.inputs.min(), digits.inputs.max()) == (0, 255)
    assert len(np.unique(digits.inputs)) == 17


def test_toy2d_points_lie_in_the_wedge_of_their_label() -> None:
    dataset = load("toy2d")
    x, y = dataset.inputs.T.astype(float)
    radius = np.hypot(x, y)
    assert len(dataset) == 500
    assert 0.1 - 1e-6 <= radius.min() < 0.15
    assert 0.95 < radius.max() <= 1 + 1e-6
    quadrant = np.select([(x > 0) & (y > 0), (x < 0) & (y > 0), (x < 0) & (y < 0), (x > 0) & (y < 0)], [0, 1, 2, 3], -1)
    assert np.array_equal(quadrant, dataset.labels)
    assert dataset.value_range is None
    assert np.bincount(dataset.labels).tolist() == [125] * 4


def test_toy2d_depends_on_its_seed_only() -> None:
    assert load("toy2d?seed=3").fingerprint == toy2d.make(seed=3).fingerprint
    assert load("toy2d?seed=4").fingerprint != load("toy2d?seed=3").fingerprint
    assert len(load("toy2d?points=40&seed=3")) == 40 == describe("toy2d?points=40&seed=3").points

"""Sets of idx files: where they are found, how they are read and scaled, and damaged ones."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from audits.data import idx
from audits.data.catalogue import describe, load
from audits.data.idx import average_blocks, read_idx, scaled
from audits.errors import BadInput
from tests.cases.families import as_one
from tests.cases.small_data_sets import idx_bytes, write_idx_set


@settings(max_examples=40)
@given(hnp.arrays(np.uint8, (2, 1, 4, 8)), st.sampled_from([1, 2, 4]))
def test_averages_are_means_of_blocks_rounded_half_up(images: npt.NDArray[np.uint8], size: int) -> None:
    averaged = average_blocks(images, size)
    assert averaged.shape == (2, 1, 4 // size, 8 // size)
    for n, c, i, j in np.ndindex(averaged.shape):
        block = images[n, c, size * i : size * (i + 1), size * j : size * (j + 1)].astype(float)
        assert averaged[n, c, i, j] == math.floor(block.mean() + 0.5)


@settings(max_examples=40)
@given(hnp.arrays(np.uint8, (2, 1, 5, 5)), st.sampled_from([5, 6, 8]))
def test_scaling_up_is_bilinear(images: npt.NDArray[np.uint8], size: int) -> None:
    wanted = torch.nn.functional.interpolate(torch.tensor(images).double(), (size, size), mode="bilinear")
    assert np.abs(scaled(images, size) - wanted.numpy()).max() < 1.1  # Pillow rounds after each axis


def test_a_scaled_set_says_its_shape(tmp_path: Path) -> None:
    write_idx_set(tmp_path / "mnist")
    assert load("mnist?size=32", tmp_path).inputs.shape[1:] == (1, 32, 32) == describe("mnist?size=32", tmp_path).shape


@pytest.mark.parametrize("compress", [False, True])
def test_idx_sets_are_read_training_part_first(tmp_path: Path, compress: bool) -> None:
    images, labels = write_idx_set(tmp_path / "mnist", compress=compress)
    dataset = load("mnist", tmp_path)
    assert np.array_equal(dataset.inputs[:, 0], images)
    assert dataset.labels.tolist() == labels.tolist()


def test_torchvisions_layout_and_orch_data_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_idx_set(tmp_path / "FashionMNIST" / "raw")
    assert describe("fashion-mnist", tmp_path).present
    write_idx_set(tmp_path / "mnist")
    monkeypatch.setenv("ORCH_DATA", str(tmp_path))
    assert describe("mnist").where == [str(tmp_path / "mnist")]


@as_one(
    "content, says",
    [
        (idx_bytes(np.zeros((2, 3, 3), np.uint8))[:-1], "not as long as its header says"),
        (idx_bytes(np.zeros((2, 3, 3), np.uint8)) + b"x", "not as long as its header says"),
        (b"\0\0\x0d\x01\0\0\0\0", "not an idx file of unsigned bytes"),
        (b"\0\0\x08\x03\0\0", "ends within its header"),
        (b"", "not an idx file"),
    ],
)
def test_damaged_idx_files_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadInput, match=says):
        read_idx(tmp_path / "file")


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(gzip.compress(idx_bytes(np.zeros((2, 3, 3), np.uint8)))[:-9])
    with pytest.raises(BadInput, match="cannot be read"):
        read_idx(tmp_path / "file.gz")


def test_labels_that_do_not_fit_the_images_are_refused(tmp_path: Path) -> None:
    write_idx_set(tmp_path / "mnist")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(3, np.uint8)))
    with pytest.raises(BadInput, match="do not fit labels"):
        load("mnist", tmp_path)


def test_a_file_that_unpacks_to_more_than_there_is_room_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, size = tmp_path / "images.gz", 2**24
    file.write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + size.to_bytes(4, "big") + bytes(size)))
    assert read_idx(file).shape == (size,)
    monkeypatch.setattr(idx, "room", lambda: size // 2)
    with pytest.raises(BadInput, match="GiB"):
        read_idx(file)

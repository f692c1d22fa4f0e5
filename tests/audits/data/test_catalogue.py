"""Data sets: what one is made of, and how the catalogue finds it by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from audits.data.catalogue import Dataset, describe, load
from audits.errors import BadInput
from tests.cases.families import as_one
from tests.cases.small_data_sets import small_dataset

# Dataset


def test_tensors_are_the_rows_asked_for_in_order() -> None:
    dataset = small_dataset()
    chosen = dataset.tensors([7, 0, 7])
    assert chosen.x.dtype == torch.uint8
    assert torch.equal(chosen.x, torch.tensor(dataset.inputs[[7, 0, 7]]))
    assert chosen.y.tolist() == [1, 0, 1]
    assert len(dataset.tensors()) == 10


def test_a_dataset_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        small_dataset().inputs[0] = 0


@as_one("part", ["inputs", "labels", "classes", "range", "shape", "dtype"])
def test_the_fingerprint_depends_on_every_part_but_the_name(part: str) -> None:
    inputs = np.zeros((4, 1, 2, 2), np.float32)
    labels = np.array([0, 1, 0, 1])
    base = Dataset("x", inputs, labels, ("a", "b"), (0.0, 1.0))
    assert Dataset("y", inputs.copy(), labels.copy(), ("a", "b"), (0.0, 1.0)).fingerprint == base.fingerprint
    changed = {
        "inputs": lambda: Dataset("x", inputs + 1, labels, ("a", "b"), (0.0, 1.0)),
        "labels": lambda: Dataset("x", inputs, 1 - labels, ("a", "b"), (0.0, 1.0)),
        "classes": lambda: Dataset("x", inputs, labels, ("a", "c"), (0.0, 1.0)),
        "range": lambda: Dataset("x", inputs, labels, ("a", "b"), None),
        "shape": lambda: Dataset("x", inputs.reshape(4, 4), labels, ("a", "b"), (0.0, 1.0)),
        "dtype": lambda: Dataset("x", np.zeros((4, 1, 4, 4), np.uint8), labels, ("a", "b"), (0.0, 1.0)),
    }[part]()
    assert changed.fingerprint != base.fingerprint


@as_one(
    "inputs, labels, says",
    [
        (np.zeros((2, 3)), np.zeros(2, np.int64), "float64"),
        (np.zeros((2, 3), np.uint8), np.zeros(2, np.int64), r"\(N, C, H, W\)"),
        (np.zeros((2, 3), np.float32), np.zeros(3, np.int64), r"shape \(2,\)"),
        (np.zeros((2, 3), np.float32), np.array([0, 2]), "0 to 1"),
        (np.zeros((2, 3), np.float32), np.array([-1, 0]), "from -1"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    inputs: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        Dataset("odd", inputs, labels, ("a", "b"), None)


# The catalogue


def test_an_unknown_name_is_answered_with_a_close_match() -> None:
    with pytest.raises(BadInput, match="did you mean 'fashion14'"):
        load("fashoin14")


def test_a_missing_set_says_where_it_was_looked_for_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_DATA", str(tmp_path))
    with pytest.raises(BadInput, match="train-images-idx3-ubyte") as caught:
        load("mnist")
    assert str(tmp_path / "mnist") in str(caught.value)
    assert "/usr/share/datasets/mnist" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(describe("mnist").missing()) == str(caught.value)


def test_a_root_that_is_given_is_the_only_place_searched(tmp_path: Path) -> None:
    facts = describe("fashion-mnist", tmp_path)
    assert not facts.present
    assert all(place.startswith(str(tmp_path)) for place in facts.where)


@as_one(
    "name, says",
    [
        ("folder", "folder:PATH"),
        ("digits:more", "its form is digits"),
        ("toy2d?sed=1", "did you mean 'seed'"),
        ("toy2d?points=many", "whole number"),
        ("toy2d?points", "option=value"),
        ("digits?side=3", "unknown option 'side'"),
        ("mnist?average=3", "must divide 28"),
        ("mnist?average=2&size=32", "give one of them"),
        ("mnist?size=0", "at least 1"),
        ("folder:/nowhere-at-all", "not found in /nowhere-at-all"),
        ("folder:x?size=0", "at least 1"),
        ("parquet:/nowhere-at-all", "orch data shard"),
        ("parquet:nosuch://bucket", "no usable place"),
        ("python:module", "python:module:name"),
    ],
)
def test_names_that_cannot_be_used_give_one_line(name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        load(name)
    assert "\n" not in str(caught.value)

"""Data from the user's own function: what it may return, and errors of one line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from audits.data.catalogue import Dataset, describe, load
from audits.data.user import checked
from audits.errors import BadInput
from tests.cases.families import as_one, thinned

OWN = (
    "import numpy as np\n"
    "def points():\n    return np.arange(12.0).reshape(6, 2), np.array([0, 1, 2] * 2)\n"
    "def broken():\n    raise RuntimeError('no such\\nfile')\n"
    "nothing = 3\n"
)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_points.py").write_text(OWN)
    monkeypatch.delitem(sys.modules, "own_points", raising=False)
    return tmp_path


def test_a_users_function_is_called(own_module: Path) -> None:
    dataset = load("python:own_points:points", own_module)
    assert dataset.inputs.dtype == np.float32
    assert dataset.inputs.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert dataset.classes == ("0", "1", "2")
    assert dataset.value_range is None
    assert describe("python:own_points:points", own_module).points == 6


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("python:own_pionts:points", "No module named 'own_pionts'"),
        ("python:own_points:point", "did you mean 'points'"),
        ("python:own_points:nothing", "no function 'nothing'"),
        ("python:own_points:broken", "RuntimeError: no such"),
    ],
)
def test_errors_of_a_users_module_are_one_line(own_module: Path, name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        load(name, own_module)
    assert "\n" not in str(caught.value)


def test_names_and_notes_of_a_users_data_set_stay_with_it() -> None:
    given = Dataset("mine", np.zeros((2, 3), np.float32), np.array([0, 1]), ("a", "b"), None, names=("x", "y"))
    found = checked("python:own:points", replace(given, notes=("python:own:points: one row is left out",)))
    assert found.names == ("x", "y") and found.notes == ("python:own:points: one row is left out",)
    assert found.fingerprint == given.fingerprint
    assert found.grouped(np.array([0, 0])).notes == found.notes


IMAGES = np.zeros((4, 1, 5, 5), np.uint8)
LABELS = np.array([0, 1, 0, 1])
SWAPPED = Dataset("mine", np.zeros((2, 3), np.float32), np.array([0, 1]), ("a", "b"), None, names=("1", "0"))
"""Two points, each called by the id of the other."""


@as_one(
    "returned, says",
    [
        (IMAGES, "returned ndarray"),
        ((IMAGES, LABELS, LABELS, 3), "returned tuple"),
        ((IMAGES, LABELS, 3), r"groups have shape \(\)"),
        ((IMAGES[:, 0], LABELS), r"needed: \(N, C, H, W\)"),
        ((np.zeros((4, 5, 5, 3), np.uint8), LABELS), "channels first"),
        ((IMAGES.astype(np.int32), LABELS), "inputs are int32"),
        ((np.array([[1, 2**24 + 1]] * 4), LABELS), "above 16777216 would be rounded"),
        ((np.array([[1, 2**63]] * 4, np.uint64), LABELS), "would be rounded"),
        ((IMAGES[:, 0, 0], LABELS), "ids or counts give int64, of pixels floats"),
        ((np.zeros(4), LABELS), r"inputs have shape \(4,\)"),
        ((np.zeros((0, 3)), np.zeros(0, int)), r"inputs have shape \(0, 3\)"),
        ((np.array([[1.0, np.nan]] * 4), LABELS), "4 input values are NaN"),
        ((np.array([[1.0, np.inf]] * 4), LABELS), "infinite"),
        (([[1.0], [1.0, 2.0]], LABELS), "cannot become an array"),
        ((np.array([["a"], ["b"]]), LABELS), "allowed: numbers"),
        ((IMAGES, LABELS[:3]), r"shape \(3,\)"),
        ((IMAGES, LABELS.astype(float)), "whole numbers"),
        ((IMAGES, LABELS + 1), "needed: 0 to C-1"),
        ((IMAGES, LABELS * 2), "without gaps"),
        ((IMAGES, LABELS * 0), "two classes"),
        (Subset([torch.zeros(2)], [0]), r"item 0 is Tensor; needed: \(input, label\)"),
        (Subset([(torch.zeros(2), 0), (torch.zeros(3), 1)], [0, 1]), "inputs have several shapes"),
        (SWAPPED, "called '1', which is the id of another"),
    ],
)
def test_what_a_users_function_returns_is_checked(returned: object, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        checked("python:own:data", returned)


NUMBERS = ["uint8", "float32", "float64", "float16"]


LAST = [(4, 8, 8, 1), (4, 8, 8, 3), (4, 8, 8, 4), (4, 5, 9, 2), (4, 28, 3, 1), (4, 9, 9, 13)]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    thinned(
        ((shape, dtype) for shape in LAST for dtype in NUMBERS),
        [*((shape, "uint8") for shape in LAST), *((LAST[1], dtype) for dtype in NUMBERS[1:])],
    ),
)
def test_images_with_channels_last_are_refused_in_one_line_whatever_their_numbers(
    shape: tuple[int, ...], dtype: str, tmp_path: Path
) -> None:
    inputs = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    np.savez(tmp_path / "own.npz", inputs=inputs, labels=LABELS)
    pq.write_table(pa.table({"inputs": inputs.astype("float32").tolist(), "label": LABELS}), tmp_path / "own.parquet")
    for read in (
        lambda: checked("own", (inputs, LABELS)),
        lambda: checked("own", TensorDataset(torch.from_numpy(inputs), torch.from_numpy(LABELS))),
        lambda: load("npz:own.npz", tmp_path),
        lambda: load("table:own.parquet", tmp_path),
    ):
        with pytest.raises(BadInput, match=r"needed: channels first, .*layout=channels_last") as caught:
            read()
        assert str(shape) in str(caught.value) and "\n" not in str(caught.value)
    first = np.moveaxis(inputs, -1, 1)
    for name in ("npz:own.npz", "table:own.parquet"):
        assert (load(f"{name}?layout=channels_last", tmp_path).inputs == first).all()
        assert (load(f"{name}?layout=channels_first", tmp_path).inputs == inputs).all()


@as_one("dtype", NUMBERS)
@as_one(
    "shape",
    [
        (4, 8, 28, 28),
        (4, 3, 8, 8),
        (4, 512, 1, 1),
        (4, 64, 3, 3),
        (4, 3, 1, 1),
        (4, 1, 2, 2),
        (4, 1, 1, 4),
        (4, 1, 8, 8),
    ],
)
def test_images_with_channels_first_and_features_are_read_as_they_are(shape: tuple[int, ...], dtype: str) -> None:
    found = checked("own", (np.ones(shape, dtype), LABELS))
    assert found.shape == shape[1:] and found.notes == ()


@pytest.mark.parametrize("key", ["groups", "group"])
def test_an_npz_file_may_hold_groups(tmp_path: Path, key: str) -> None:
    names = np.array(["01", "1", "01", "1 "])
    np.savez(tmp_path / "own.npz", **{"inputs": np.ones((4, 2)), "labels": LABELS, key: names})
    groups = load("npz:own.npz", tmp_path).groups
    assert groups is not None and groups.tolist() == [0, 1, 0, 2]


def test_floats_that_would_become_infinite_are_refused() -> None:
    inputs = np.ones((4, 2))
    inputs[1, 0] = -1e39
    with pytest.raises(BadInput, match=r"1 input values are beyond .* float32"):
        checked("own", (inputs, LABELS))


@as_one("shape", [(4, 8, 3), (4, 28, 28), (4, 3), (4, 8, 8, 8, 3)])
def test_floats_that_are_no_images_are_read_as_they_are(shape: tuple[int, ...]) -> None:
    assert checked("own", (np.ones(shape), LABELS)).shape == shape[1:]


@as_one("dtype", NUMBERS)
@as_one("shape", [(4, 3, 32, 3), (4, 1, 5, 1), (4, 3, 3, 3), (4, 4, 4, 4), (4, 2, 2, 3)])
def test_a_shape_that_may_be_either_is_read_as_channels_first_and_noted(shape: tuple[int, ...], dtype: str) -> None:
    inputs = np.ones(shape, dtype)
    found = checked("own", (inputs, LABELS))
    assert found.shape == shape[1:] and str(shape) in found.notes[0] and "channels_last" in found.notes[0]
    assert checked("own", (inputs, LABELS), "channels_first").notes == ()
    assert checked("own", (inputs, LABELS), "channels_first").notes == ()
    assert checked("own", (inputs, LABELS), "channels_last").notes == ()


def test_a_user_may_return_tensors_and_data_sets() -> None:
    own = checked("python:own:data", (torch.from_numpy(IMAGES), torch.from_numpy(LABELS)))
    assert own.value_range == (0.0, 1.0)
    whole = checked("python:own:data", Dataset("mine", IMAGES, LABELS, ("a", "b"), (0.0, 1.0), fingerprint="made up"))
    assert whole.classes == ("a", "b")
    assert whole.fingerprint == Dataset("other", IMAGES, LABELS, ("a", "b"), (0.0, 1.0)).fingerprint


@as_one("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_whole_numbers_are_read_as_what_they_are(dtype: type) -> None:
    tokens = np.array([[0, 5, 101], [7, 0, 127], [1, 1, 1], [2, 3, 4]], dtype)
    own = checked("python:own:data", (tokens, LABELS))
    assert own.inputs.dtype == np.float32 and own.inputs.tolist() == tokens.tolist()
    assert own.value_range is None, "as texts are held, not as pixels are"


def test_the_largest_ids_stay_apart() -> None:
    tokens = np.array([[2**24 - 1], [2**24], [0], [1]])
    assert checked("python:own:data", (tokens, LABELS)).inputs.astype(np.int64).tolist() == tokens.tolist()


COLOURS = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)


def test_points_come_as_people_hold_them(tmp_path: Path) -> None:
    images = COLOURS.transpose(0, 3, 1, 2)
    expected = checked("own", (images, LABELS))
    pictures = [(PIL.Image.fromarray(one), int(label)) for one, label in zip(COLOURS, LABELS, strict=True)]
    tensors = [(torch.from_numpy(one.copy()), int(label)) for one, label in zip(images, LABELS, strict=True)]
    np.savez(tmp_path / "own.npz", images=images, targets=LABELS)
    for given in (
        Subset(pictures, range(4)),
        Subset(tensors, range(4)),
        DataLoader(Subset(tensors, range(4)), batch_size=2, shuffle=True),
        tmp_path / "own.npz",
    ):
        assert checked("own", given).fingerprint == expected.fingerprint
    assert checked("own", (COLOURS, LABELS), "channels_last").fingerprint == expected.fingerprint
    assert load("npz:own.npz", tmp_path).fingerprint == expected.fingerprint
    np.savez(tmp_path / "last.npz", inputs=COLOURS, labels=LABELS)
    assert load("npz:last.npz?layout=channels_last", tmp_path).fingerprint == expected.fingerprint


def archived(folder: Path) -> None:
    """Write images with their channels last, the same without what a reader looks for, and files cut or of no array."""
    np.savez(folder / "last.npz", inputs=COLOURS, labels=LABELS)
    np.savez(folder / "odd.npz", pixels=COLOURS)
    np.savez(folder / "large.npz", inputs=np.array([[1.0, 2.0]] * 3 + [[1.0, -1e39]]), labels=LABELS)
    whole = (folder / "last.npz").read_bytes()
    for name, content in {"cut": whole[: len(whole) // 2], "empty": b"", "other": b"no archive at all"}.items():
        (folder / f"{name}.npz").write_bytes(content)


@as_one(
    "name, says",
    [
        ("npz:last.npz", "or .layout=channels_last"),
        ("npz:last.npz?layout=last", "layout is 'last'; allowed: channels_first, channels_last"),
        ("npz:last.npz?layuot=x", "did you mean 'layout'"),
        ("npz:cut.npz", r"cut\.npz cannot be read as \.npz: "),
        ("npz:empty.npz", r"empty\.npz cannot be read as \.npz: "),
        ("npz:other.npz", r"other\.npz cannot be read as \.npz: "),
        ("npz:odd.npz", "holds pixels; needed: an array called inputs or x"),
        ("npz:large.npz", r"1 input values are beyond .* float32"),
    ],
)
def test_archives_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path, name: str, says: str) -> None:
    archived(tmp_path)
    with pytest.raises(BadInput, match=says) as refused:
        load(name, tmp_path)
    assert "\n" not in str(refused.value) and "allow_pickle" not in str(refused.value)


def test_names_of_points_may_be_their_own_ids() -> None:
    assert checked("python:own:points", replace(SWAPPED, names=("0", "1"))).names == ("0", "1")

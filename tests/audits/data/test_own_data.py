"""Data from the user's own function: what it may return, and errors of one line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader, Subset

from audits.data.catalogue import Dataset, describe, load
from audits.data.user import checked
from audits.errors import BadInput


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_points.py").write_text(
        "import numpy as np\n"
        "def points():\n    return np.arange(12.0).reshape(6, 2), np.array([0, 1, 2] * 2)\n"
        "def broken():\n    raise RuntimeError('no such\\nfile')\n"
        "nothing = 3\n"
    )
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


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (IMAGES, "returned ndarray"),
        ((IMAGES, LABELS, LABELS, 3), "returned tuple"),
        ((IMAGES, LABELS, 3), r"groups have shape \(\)"),
        ((IMAGES[:, 0], LABELS), r"needed: \(N, C, H, W\)"),
        ((np.zeros((4, 5, 5, 3), np.uint8), LABELS), "channels first"),
        ((IMAGES.astype(np.int32), LABELS), "inputs are int32"),
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
    ],
)
def test_what_a_users_function_returns_is_checked(returned: object, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        checked("python:own:data", returned)


def test_a_user_may_return_tensors_and_data_sets() -> None:
    own = checked("python:own:data", (torch.from_numpy(IMAGES), torch.from_numpy(LABELS)))
    assert own.value_range == (0.0, 1.0)
    whole = checked("python:own:data", Dataset("mine", IMAGES, LABELS, ("a", "b"), (0.0, 1.0), fingerprint="made up"))
    assert whole.classes == ("a", "b")
    assert whole.fingerprint == Dataset("other", IMAGES, LABELS, ("a", "b"), (0.0, 1.0)).fingerprint


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
    for name, says in (
        ("npz:last.npz", "or .layout=channels_last"),
        ("npz:last.npz?layout=last", "layout is 'last'; allowed: channels_first, channels_last"),
        ("npz:own.npz?layuot=x", "did you mean 'layout'"),
    ):
        with pytest.raises(BadInput, match=says):
            load(name, tmp_path)
    whole = (tmp_path / "own.npz").read_bytes()
    for name, content in {"cut": whole[: len(whole) // 2], "empty": b"", "other": b"no archive at all"}.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
        with pytest.raises(BadInput, match=rf"{name}.npz cannot be read as .npz: ") as refused:
            load(f"npz:{name}.npz", tmp_path)
        assert "\n" not in str(refused.value) and "allow_pickle" not in str(refused.value)
    np.savez(tmp_path / "odd.npz", pixels=COLOURS)
    with pytest.raises(BadInput, match="holds pixels; needed: an array called inputs or x"):
        load("npz:odd.npz", tmp_path)
    with pytest.raises(BadInput, match=r"item 0 is Tensor; needed: \(input, label\)"):
        checked("own", Subset([torch.zeros(2)], [0]))
    with pytest.raises(BadInput, match="inputs have several shapes"):
        checked("own", Subset([(torch.zeros(2), 0), (torch.zeros(3), 1)], [0, 1]))


def test_names_of_points_are_not_the_ids_of_others() -> None:
    given = Dataset("mine", np.zeros((2, 3), np.float32), np.array([0, 1]), ("a", "b"), None, names=("0", "1"))
    assert checked("python:own:points", given).names == ("0", "1")
    with pytest.raises(BadInput, match="called '1', which is the id of another"):
        checked("python:own:points", replace(given, names=("1", "0")))

"""CIFAR-10 and CIFAR-100 in the layouts of their authors; pickles are read as data and never run."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.data.catalogue import Dataset, describe, load
from audits.data.cifar import CIFAR10, CIFAR100, CifarSet
from audits.data.plain_pickle import Array, read_plain_pickle
from audits.errors import BadInput
from tests.cases.families import as_one, thinned

Part = tuple[npt.NDArray[np.uint8], list[int]]
PROTOCOLS = (2, 3, 4)


def drawn(kind: CifarSet, images: int = 4) -> list[Part]:
    """Return pixels (images, 3072) and labels for every file of ``kind``."""
    random = np.random.default_rng(len(kind.classes))
    return [
        (
            random.integers(0, 256, (images, 3072), dtype=np.uint8),
            random.integers(0, len(kind.classes), images).tolist(),
        )
        for _ in kind.python_files
    ]


def fields(kind: CifarSet, pixels: object, labels: object) -> dict[str, object]:
    """Return what one of the authors' pickles holds."""
    found = {"data": pixels, "filenames": ["a.png", "b.png"], "batch_label": "training batch 1 of 5"}
    more = {"coarse_labels": [0, 1]} if kind is CIFAR100 else {}
    return {**found, **more, kind.labels_key: labels}


def write_pickles(kind: CifarSet, root: Path, protocol: int = 2, images: int = 4) -> list[Part]:
    """Write ``kind`` as pickles below ``root`` and return its parts."""
    folder = root / kind.python_layout
    folder.mkdir(parents=True)
    parts = drawn(kind, images)
    for name, (pixels, labels) in zip(kind.python_files, parts, strict=True):
        (folder / name).write_bytes(pickle.dumps(fields(kind, pixels, labels), protocol=protocol))
    return parts


def write_binary(kind: CifarSet, root: Path) -> list[Part]:
    """Write ``kind`` as binary records below ``root`` and return its parts."""
    folder = root / kind.binary_layout
    folder.mkdir(parents=True)
    parts = drawn(kind)
    for name, (pixels, labels) in zip(kind.binary_files, parts, strict=True):
        before = [b"\x07"] * (kind.label_bytes - 1)  # the coarse label
        records = [
            b"".join([*before, bytes([label]), row.tobytes()]) for row, label in zip(pixels, labels, strict=True)
        ]
        (folder / name).write_bytes(b"".join(records))
    return parts


def python2_pickle(pixels: npt.NDArray[np.uint8], labels: list[int]) -> bytes:
    """Return what Python 2 wrote with protocol 2: eight-bit strings in place of text, also for the array's content."""

    def text(value: bytes) -> bytes:
        if len(value) < 256:
            return b"U" + bytes([len(value)]) + value
        return b"T" + struct.pack("<i", len(value)) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85" + text(b"b") + b"\x87R("
        b"K\x01" + b"".join(b"M" + struct.pack("<H", size) for size in pixels.shape) + b"\x86"
        b"cnumpy\ndtype\nq\x05" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + text(pixels.tobytes()) + b"tb"
    )  # fmt: skip
    listed = b"]q\x06(" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}q\x01(" + text(b"data") + array + text(b"labels") + listed + b"u."


def expect(dataset: Dataset, parts: list[Part]) -> None:
    assert np.array_equal(dataset.inputs.reshape(-1, 3072), np.concatenate([pixels for pixels, _ in parts]))
    assert dataset.labels.tolist() == [label for _, labels in parts for label in labels]
    assert dataset.shape == (3, 32, 32)
    assert dataset.value_range == (0.0, 1.0)


@as_one("protocol", PROTOCOLS)
@as_one("name, kind", [("cifar10", CIFAR10), ("cifar100", CIFAR100)])
def test_the_authors_pickles_are_read_training_files_first(
    tmp_path: Path, name: str, kind: CifarSet, protocol: int
) -> None:
    parts = write_pickles(kind, tmp_path, protocol)
    expect(load(name, tmp_path), parts)


@pytest.mark.parametrize(("name", "kind"), [("cifar10", CIFAR10), ("cifar100", CIFAR100)])
def test_both_layouts_are_the_same_data_set(tmp_path: Path, name: str, kind: CifarSet) -> None:
    parts = write_binary(kind, tmp_path / "binary")
    write_pickles(kind, tmp_path / "python")
    binary, pickled = load(name, tmp_path / "binary"), load(name, tmp_path / "python")
    expect(binary, parts)
    assert binary.fingerprint == pickled.fingerprint


def test_files_of_python_2_are_read(tmp_path: Path) -> None:
    parts = write_pickles(CIFAR10, tmp_path)
    for name, (pixels, labels) in zip(CIFAR10.python_files, parts, strict=True):
        content = python2_pickle(pixels, labels)
        again = pickle.loads(content, encoding="latin1")  # the standard library agrees that this is such a file
        assert np.array_equal(again["data"], pixels)
        (tmp_path / CIFAR10.python_layout / name).write_bytes(content)
    expect(load("cifar10", tmp_path), parts)


def test_descriptions_agree_with_what_is_read(tmp_path: Path) -> None:
    for name, kind in (("cifar10", CIFAR10), ("cifar100", CIFAR100)):
        write_pickles(kind, tmp_path)
        facts, dataset = describe(name, tmp_path), load(name, tmp_path)
        assert facts.present
        assert facts.points == 60_000  # of the real files
        assert (facts.shape, facts.classes) == (dataset.shape, dataset.classes)
        assert len(facts.classes) == len(set(facts.classes))
        assert list(facts.classes) == sorted(facts.classes)
    assert len(CIFAR10.classes) == 10
    assert len(CIFAR100.classes) == 100


def test_a_missing_set_says_which_folder_is_looked_for_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_DATA", str(tmp_path))
    with pytest.raises(BadInput, match=r"cifar-10-python\.tar\.gz") as caught:
        load("cifar10")
    assert str(tmp_path / "cifar10" / "cifar-10-batches-py") in str(caught.value)
    assert str(tmp_path / "cifar-10-batches-py") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("below", ["", "cifar10", "cifar10/cifar-10-batches-py"])
def test_the_folder_of_torchvision_is_found_in_orch_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    write_pickles(CIFAR10, tmp_path / "made")
    place = tmp_path / "data" / below
    place.parent.mkdir(parents=True, exist_ok=True)
    source = tmp_path / "made" / ("cifar-10-batches-py" if below.endswith("-py") else "")
    source.rename(place)
    monkeypatch.setenv("ORCH_DATA", str(tmp_path / "data"))
    assert len(load("cifar10")) == 24


def test_an_incomplete_folder_is_not_a_data_set(tmp_path: Path) -> None:
    write_pickles(CIFAR10, tmp_path)
    (tmp_path / CIFAR10.python_layout / "data_batch_3").unlink()
    assert not describe("cifar10", tmp_path).present


def broken(change: Callable[[dict[str, object]], object]) -> bytes:
    pixels, labels = drawn(CIFAR10, 2)[0]
    content = fields(CIFAR10, pixels, labels)
    return pickle.dumps(change(content) or content, protocol=2)


@as_one(
    "content, says",
    [
        (broken(lambda f: f.pop("labels") and None), "no list 'labels'"),
        (broken(lambda f: f.update(labels=["1", "2"])), "no list 'labels' of whole numbers"),
        (broken(lambda f: f.update(labels=[1])), "1 labels for 2 images"),
        (broken(lambda f: f.update(labels=[1, 10])), "labels outside 0 to 9"),
        (broken(lambda f: f.update(labels=[1, 2**70])), "whole numbers from 0 to 9"),
        (broken(lambda f: f.update(data=np.zeros((2, 5), np.uint8))), r"shape \(N, 3072\)"),
        (broken(lambda f: f.update(data=[1, 2])), "no array 'data'"),
        (broken(lambda f: f.update(data=np.zeros((2, 3072), np.int64))), "numpy.dtype"),
        (broken(lambda f: [1, 2]), "no array 'data'"),
        (broken(lambda f: None)[:-400], "is damaged"),
        (b"", "is damaged"),
        (b"this is no pickle", "is damaged|asks for"),
    ],
)
def test_damaged_pickles_are_refused_on_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    write_pickles(CIFAR10, tmp_path)
    (tmp_path / CIFAR10.python_layout / "data_batch_2").write_bytes(content)
    with pytest.raises(BadInput, match=says) as caught:
        load("cifar10", tmp_path)
    assert "data_batch_2" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 3072, 2 * 3073 - 1])
def test_binary_files_of_the_wrong_length_are_refused(tmp_path: Path, length: int) -> None:
    write_binary(CIFAR10, tmp_path)
    (tmp_path / CIFAR10.binary_layout / "test_batch.bin").write_bytes(bytes(length))
    with pytest.raises(BadInput, match="a multiple of 3073"):
        load("cifar10", tmp_path)


# Reading a pickle as data


class Calls:
    """An object whose pickle calls a function with arguments when it is loaded."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self.call


class Plain:
    """An object of a class of its own."""

    def __init__(self) -> None:
        self.value = 1


PLACES = ("in place of the file", "as the labels", "in the list", "as a key")


@pytest.mark.parametrize(
    ("where", "protocol"),
    thinned(
        ((where, protocol) for where in PLACES for protocol in (0, 1, *PROTOCOLS, 5)),
        [
            *((where, PROTOCOLS[-1]) for where in PLACES),
            *(("in the list", each) for each in (0, 1, *PROTOCOLS[:-1], 5)),
        ],
    ),
)
def test_a_malicious_pickle_is_refused_and_nothing_runs(tmp_path: Path, protocol: int, where: str) -> None:
    trap = tmp_path / "it-ran"
    calls = (Calls(os.mkdir, str(trap)), Calls(os.system, f"mkdir {trap}"), Calls(exec, f"open({str(trap)!r}, 'w')"))
    write_pickles(CIFAR10, tmp_path)
    for call in calls:
        pixels, labels = drawn(CIFAR10)[0]
        content: object = {
            "in place of the file": call,
            "as the labels": fields(CIFAR10, pixels, call),
            "in the list": fields(CIFAR10, pixels, [*labels, call]),
            "as a key": {call: 1},
        }[where]
        victim = tmp_path / CIFAR10.python_layout / "data_batch_1"
        victim.write_bytes(pickle.dumps(content, protocol=protocol))
        with pytest.raises(BadInput, match=r"data_batch_1 asks for .*nothing of it was run"):
            load("cifar10", tmp_path)
        assert not trap.exists()
    pickle.loads(pickle.dumps(calls[0], protocol=protocol))
    assert trap.exists()  # unpickling would have run it


@as_one(
    "content",
    [
        pickle.dumps(Plain(), protocol=2),
        pickle.dumps(Plain(), protocol=4),
        pickle.dumps(slice(1, 2), protocol=2),
        pickle.dumps({1, 2}, protocol=4),
        pickle.dumps(np.dtype("O"), protocol=2),
        pickle.dumps(np.array([None, 1]), protocol=2),
        pickle.dumps(np.array([("a", 1)], dtype=[("name", "U1"), ("n", "i4")]), protocol=2),
        pickle.dumps(np.zeros(3, np.uint8), protocol=5),  # names a function of NumPy that is not known here
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
        b"\x80\x02c_codecs\nencode\n(]tR.",
        b"\x80\x02}}b.",
        b"\x80\x02cnumpy\nndarray\n(tR.",
        b"(S'mkdir here'\nios\nsystem\n.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02Ppersistent\n.",
        b"\x80\x02})K\x01s.",
    ],
)
def test_only_plain_data_and_arrays_of_bytes_are_read(content: bytes) -> None:
    with pytest.raises(BadInput, match="file asks for"):
        read_plain_pickle(content, "file")


@as_one(
    "content",
    [
        b"\x80\x02.",
        b"\x80\x02(.",
        b"\x80\x02K\x01K\x02.",
        b"\x80\x02h\x01.",
        b"\x80\x02t.",
        b"\x80\x02K\x01a.",
        b"\x80\x02)R.",
        b"\x80\x02}(U\x01au.",
        b"\x80\x02](K\x01(e.",
        b"\x80\x02K\x01K\x02s.",
        b"\x80\x02(\x85.",
        b"\x80\x04K\x01K\x02\x93.",
    ],
)
def test_instructions_without_their_values_are_damage(content: bytes) -> None:
    with pytest.raises(BadInput, match="file is damaged"):
        read_plain_pickle(content, "file")


def test_an_array_that_claims_more_than_it_holds_is_damage() -> None:
    content = pickle.dumps(np.zeros((2, 3), np.uint8), protocol=2).replace(b"K\x02K\x03\x86", b"K\x09K\x03\x86")
    with pytest.raises(BadInput, match=r"shape \(9, 3\) does not hold 27 bytes"):
        read_plain_pickle(content, "file")


KEYS = st.text() | st.binary(min_size=1, max_size=300)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | KEYS,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner),
)


@settings(max_examples=12)
@given(VALUES, st.sampled_from(PROTOCOLS))
def test_plain_data_are_what_unpickling_gives(value: object, protocol: int) -> None:
    content = pickle.dumps(value, protocol=protocol)
    found = read_plain_pickle(content, "file")
    assert found == pickle.loads(content)
    assert type(found) is type(value)


@as_one("protocol", PROTOCOLS)
@as_one("order", ["C", "F"])
def test_arrays_keep_their_order(protocol: int, order: Any) -> None:
    array = np.asarray(np.arange(24, dtype=np.uint8).reshape(2, 3, 4), order=order)
    found = read_plain_pickle(pickle.dumps(array, protocol=protocol), "file")
    assert isinstance(found, Array)
    assert np.array_equal(found.bytes_of_shape(), array)

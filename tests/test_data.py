"""Data sets: the catalogue, the embedded images, idx files, image folders, shards and the user's own functions."""

from __future__ import annotations

import gzip
import math
import struct
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from audits.data import toy2d
from audits.data.catalogue import CATALOGUE, Dataset, describe, load, names
from audits.data.fashion14 import FINGERPRINT, make_fashion14
from audits.data.idx import average_blocks, read_idx, read_parts, scaled
from audits.data.shards import pack, unpack, write_shards
from audits.data.source import SYSTEM_DATASETS
from audits.data.user import checked
from audits.errors import BadInput

ORIGINAL = SYSTEM_DATASETS / "fashion-mnist"
needs_original = pytest.mark.skipif(
    not (ORIGINAL / "train-images-idx3-ubyte.gz").exists(),
    reason="the original images (Debian's dataset-fashion-mnist) are not on this machine",
)


@pytest.fixture(scope="module")
def fashion14() -> Dataset:
    return load("fashion14")


def idx_bytes(array: npt.NDArray[np.uint8]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx_set(folder: Path, *, compress: bool = False) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Write a training part of 6 and a test part of 4 images; return all images and labels in order."""
    folder.mkdir(parents=True)
    images = np.arange(10 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(10, 28, 28)
    labels = np.arange(10, dtype=np.uint8)[::-1].copy()
    for part, rows in (("train", slice(0, 6)), ("t10k", slice(6, 10))):
        for kind, array in (("images-idx3-ubyte", images[rows]), ("labels-idx1-ubyte", labels[rows])):
            content = idx_bytes(array)
            name = f"{part}-{kind}" + (".gz" if compress else "")
            (folder / name).write_bytes(gzip.compress(content) if compress else content)
    return images, labels


def small_dataset(points: int = 10, *, floats: bool = False) -> Dataset:
    random = np.random.default_rng(0)
    labels = np.arange(points, dtype=np.int64) % 3
    if floats:
        return Dataset("small", random.normal(size=(points, 5)).astype(np.float32), labels, ("a", "b", "c"), None)
    images = random.integers(0, 256, (points, 2, 4, 3), dtype=np.uint8)
    return Dataset("small", images, labels, ("a", "b", "c"), (0.0, 1.0))


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


@given(hnp.arrays(np.uint8, (2, 1, 4, 8)), st.sampled_from([1, 2, 4]))
def test_averages_are_means_of_blocks_rounded_half_up(images: npt.NDArray[np.uint8], size: int) -> None:
    averaged = average_blocks(images, size)
    assert averaged.shape == (2, 1, 4 // size, 8 // size)
    for n, c, i, j in np.ndindex(averaged.shape):
        block = images[n, c, size * i : size * (i + 1), size * j : size * (j + 1)].astype(float)
        assert averaged[n, c, i, j] == math.floor(block.mean() + 0.5)


@given(hnp.arrays(np.uint8, (2, 1, 5, 5)), st.sampled_from([5, 6, 8]))
def test_scaling_up_is_bilinear(images: npt.NDArray[np.uint8], size: int) -> None:
    wanted = torch.nn.functional.interpolate(torch.tensor(images).double(), (size, size), mode="bilinear")
    assert np.abs(scaled(images, size) - wanted.numpy()).max() < 1.1  # Pillow rounds after each axis


def test_a_scaled_set_says_its_shape(tmp_path: Path) -> None:
    write_idx_set(tmp_path / "mnist")
    assert load("mnist?size=32", tmp_path).inputs.shape[1:] == (1, 32, 32) == describe("mnist?size=32", tmp_path).shape


@needs_original
def test_the_originals_averaged_are_the_same_data_set(fashion14: Dataset) -> None:
    assert load("fashion-mnist?average=2").fingerprint == fashion14.fingerprint
    assert describe("fashion-mnist?average=2").shape == (1, 14, 14)


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


@pytest.mark.parametrize("part", ["inputs", "labels", "classes", "range", "shape", "dtype"])
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


@pytest.mark.parametrize(
    ("inputs", "labels", "says"),
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


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("folder", "folder:PATH"),
        ("digits:more", "its form is digits"),
        ("toy2d?sed=1", "did you mean 'seed'"),
        ("toy2d?points=many", "whole number"),
        ("toy2d?points", "option=value"),
        ("digits?size=3", "unknown option 'size'"),
        ("mnist?average=3", "must divide 28"),
        ("mnist?average=2&size=32", "give one of them"),
        ("mnist?size=0", "at least 1"),
        ("folder:/nowhere-at-all", "not found in /nowhere-at-all"),
        ("folder:x?size=0", "at least 1"),
        ("parquet:/nowhere-at-all", "orch data shard"),
        ("parquet:nosuch://bucket", "no usable place"),
        ("python:module", "python:module:function"),
    ],
)
def test_names_that_cannot_be_used_give_one_line(name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        load(name)
    assert "\n" not in str(caught.value)


def test_every_source_has_a_form_and_a_description() -> None:
    assert len(names()) == len(CATALOGUE) >= 8
    for name in CATALOGUE:
        assert CATALOGUE[name].form.startswith(name)
        assert CATALOGUE[name].description


# idx files


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


@pytest.mark.parametrize(
    ("content", "says"),
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


# Folders of images


def image_folder(folder: Path, suffix: str = "pgm", mode: str = "L", size: tuple[int, int] = (4, 3)) -> Path:
    """Write two grey levels in two classes: ``cat`` is 10 and 20, ``dog`` 30 and 40."""
    for name, values in (("dog", (30, 40)), ("cat", (10, 20))):
        (folder / name).mkdir(parents=True)
        for value in values:
            colour = value if mode == "L" else (value, 0, 255)
            Image.new(mode, size, colour).save(folder / name / f"{value}.{suffix}")
    return folder


@pytest.mark.parametrize("suffix", ["pgm", "png", "bmp"])
def test_grey_images_are_read_with_one_channel_and_classes_sorted(tmp_path: Path, suffix: str) -> None:
    dataset = load(f"folder:{image_folder(tmp_path / 'animals', suffix)}")
    assert dataset.classes == ("cat", "dog")
    assert dataset.inputs.shape == (4, 1, 3, 4)
    assert dataset.inputs[:, 0, 0, 0].tolist() == [10, 20, 30, 40]
    assert dataset.labels.tolist() == [0, 0, 1, 1]


def test_one_coloured_image_makes_all_three_channels(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "animals")
    Image.new("RGB", (4, 3), (1, 2, 3)).save(folder / "cat" / "00.ppm")
    dataset = load(f"folder:{folder}")
    assert dataset.inputs[:, :, 0, 0].tolist() == [[1, 2, 3], [10] * 3, [20] * 3, [30] * 3, [40] * 3]
    facts = describe(f"folder:{folder}")
    assert (facts.points, facts.shape, facts.classes) == (5, (3, 3, 4), ("cat", "dog"))


@pytest.mark.parametrize(("suffix", "tolerance"), [("jpg", 6), ("webp", 6), ("JPEG", 6), ("png", 0)])
def test_coloured_images_are_channels_first(tmp_path: Path, suffix: str, tolerance: int) -> None:
    dataset = load(f"folder:{image_folder(tmp_path / 'animals', suffix, 'RGB', (16, 16))}")
    means = dataset.inputs.astype(float).mean(axis=(2, 3))
    assert np.abs(means - [[10, 0, 255], [20, 0, 255], [30, 0, 255], [40, 0, 255]]).max() <= tolerance


def test_images_of_several_sizes_need_a_size(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "animals")
    Image.new("L", (9, 9), 50).save(folder / "dog" / "50.pgm")
    with pytest.raises(BadInput, match=r"50\.pgm is 9×9 but .*10\.pgm is 4×3; .*size=N"):
        describe(f"folder:{folder}")
    assert load(f"folder:{folder}?size=5").inputs[:, 0, 4, 4].tolist() == [10, 20, 30, 40, 50]


def test_an_unreadable_image_is_named(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "animals")
    (folder / "dog" / "99.jpg").write_bytes(b"this is no image")
    for call in (describe, load):
        with pytest.raises(BadInput, match=r"99\.jpg cannot be read") as caught:
            call(f"folder:{folder}")
        assert "\n" not in str(caught.value)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "animals", "png", "RGB", (64, 64))
    whole = (folder / "cat" / "10.png").read_bytes()
    (folder / "cat" / "10.png").write_bytes(whole[: len(whole) - 30])
    with pytest.raises(BadInput, match=r"10\.png cannot be read"):
        load(f"folder:{folder}")


def test_images_of_16_bits_are_refused(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "animals")
    Image.fromarray(np.full((3, 4), 40_000, np.uint16)).save(folder / "cat" / "deep.png")
    with pytest.raises(BadInput, match=r"deep\.png has more than 8 bits"):
        load(f"folder:{folder}")


@pytest.mark.parametrize(("empty", "says"), [("", "at least two"), ("cat", "holds no image")])
def test_folders_without_classes_or_images_are_refused(tmp_path: Path, empty: str, says: str) -> None:
    if empty:
        folder = image_folder(tmp_path / "animals")
        for file in (folder / empty).iterdir():
            file.unlink()
    with pytest.raises(BadInput, match=says):
        describe(f"folder:{tmp_path / 'animals' if empty else tmp_path}")


def test_a_relative_folder_is_looked_for_under_the_root(tmp_path: Path) -> None:
    image_folder(tmp_path / "animals")
    assert len(load("folder:animals", tmp_path)) == 4


# The user's own function


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


IMAGES = np.zeros((4, 1, 5, 5), np.uint8)
LABELS = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (IMAGES, "returned ndarray"),
        ((IMAGES, LABELS, 3), "returned tuple"),
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


# Parquet shards


@pytest.mark.parametrize("floats", [False, True])
@given(points=st.integers(1, 20), per_shard=st.integers(1, 25))
def test_shards_give_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, floats: bool, points: int, per_shard: int
) -> None:
    folder = tmp_path_factory.mktemp("shards") / "set"
    dataset = small_dataset(points, floats=floats)
    assert len(write_shards(dataset, str(folder), points_per_shard=per_shard)) == math.ceil(points / per_shard)
    again = load(f"parquet:{folder}")
    assert np.array_equal(again.inputs, dataset.inputs)
    assert again.inputs.dtype == dataset.inputs.dtype
    assert again.labels.tolist() == dataset.labels.tolist()
    assert (again.classes, again.value_range) == (dataset.classes, dataset.value_range)
    assert again.fingerprint == dataset.fingerprint
    facts = describe(f"parquet:{folder}")
    assert (facts.points, facts.shape, facts.classes) == (points, dataset.shape, dataset.classes)


def test_the_same_points_give_the_same_bytes() -> None:
    assert pack(small_dataset()) == pack(small_dataset())


def test_a_single_file_and_an_address_are_read(tmp_path: Path) -> None:
    (tmp_path / "one.parquet").write_bytes(pack(small_dataset()))
    assert len(load("parquet:one.parquet", tmp_path)) == 10
    assert len(load(f"parquet:file://{tmp_path}")) == 10


def test_a_missing_shard_is_noticed(tmp_path: Path) -> None:
    paths = write_shards(small_dataset(), str(tmp_path), points_per_shard=4)
    Path(paths[1]).unlink()
    with pytest.raises(BadInput, match="6 of 10 points"):
        load(f"parquet:{tmp_path}")


def test_shards_of_two_sets_do_not_mix(tmp_path: Path) -> None:
    write_shards(small_dataset(), str(tmp_path))
    with pytest.raises(BadInput, match="already holds Parquet files"):
        write_shards(small_dataset(11), str(tmp_path))
    (tmp_path / "part-2.parquet").write_bytes(pack(small_dataset(11)))
    with pytest.raises(BadInput, match="shards of 2 data sets"):
        load(f"parquet:{tmp_path}")


def test_foreign_and_damaged_parquet_files_are_refused(tmp_path: Path) -> None:
    table = pq.read_table(pack_to(tmp_path / "ours.parquet"))
    pq.write_table(table.replace_schema_metadata(None), tmp_path / "foreign.parquet")
    (tmp_path / "damaged.parquet").write_bytes(pack(small_dataset())[:-20])
    for call in (describe, load):
        with pytest.raises(BadInput, match="not one that 'orch data shard' wrote"):
            call(f"parquet:{tmp_path}/foreign.parquet")
        with pytest.raises(BadInput, match="cannot be read"):
            call(f"parquet:{tmp_path}/damaged.parquet")


def pack_to(path: Path) -> Path:
    path.write_bytes(pack(small_dataset()))
    return path


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

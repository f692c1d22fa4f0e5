"""Caltech-101 and Flowers-102 in the authors' layouts: order, labels and pixels as torchvision reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from audits.data import imagenet
from audits.data.caltech101 import BACKGROUND, LAYOUT
from audits.data.catalogue import describe, load
from audits.data.flowers102 import CLASSES as FLOWERS
from audits.data.flowers102 import matlab_tables
from audits.errors import BadInput
from tests.cases.families import as_one

KINDS = ("Faces", "accordion", "airplanes")
LABELS = [102, 1, 1, 33, 102, 7, 5, 2]  # of images 1 to 8
PARTS = {"trnid": [6, 2], "valid": [1, 8], "tstid": [7, 3, 5, 4]}


def picture(number: int, size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    random = np.random.default_rng(number)
    small = random.integers(0, 256, (size[1] // 4 + 1, size[0] // 4 + 1, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).convert(mode)


def write_caltech(folder: Path) -> Path:
    """Write the true layout below ``folder``: 2, 3 and 4 images of three kinds, one grey, and the background."""
    for row, name in enumerate((*KINDS, BACKGROUND)):
        place = folder / LAYOUT / name
        place.mkdir(parents=True)
        for number in range(1, row + 3):
            mode = "L" if (row, number) == (1, 2) else "RGB"
            picture(10 * row + number, (30 + number, 24), mode).save(place / f"image_{number:04d}.jpg")
    (folder / LAYOUT / BACKGROUND / "tmp").write_text("as in the archive")
    return folder


def write_flowers(folder: Path, labels: list[int] = LABELS, **parts: list[int]) -> Path:
    """Write the true layout below ``folder``, tables as MATLAB's rows of small whole numbers."""
    base = folder / "flowers-102"
    (base / "jpg").mkdir(parents=True, exist_ok=True)
    for number in range(1, len(labels) + 1):
        picture(number, (40, 20 + number)).save(base / "jpg" / f"image_{number:05d}.jpg")
    from scipy.io import savemat

    savemat(base / "imagelabels.mat", {"labels": np.array([labels], np.uint8)})
    rows = {name: np.array([ids], np.uint16) for name, ids in (PARTS | parts).items()}
    savemat(base / "setid.mat", rows)
    return folder


@pytest.fixture
def caltech(tmp_path: Path) -> Path:
    return write_caltech(tmp_path / "caltech101")


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    return write_flowers(tmp_path)


def test_caltech_has_the_files_and_labels_of_torchvision_without_the_background(caltech: Path) -> None:
    dataset = load("caltech101?size=12", caltech)
    import torchvision.datasets

    theirs = torchvision.datasets.Caltech101(caltech.parent)
    assert dataset.classes == KINDS == tuple(theirs.categories)
    assert dataset.labels.tolist() == theirs.y == [0, 0, 1, 1, 1, 2, 2, 2, 2]
    rows = zip(theirs.y, theirs.index, strict=True)
    files = [caltech / LAYOUT / KINDS[label] / f"image_{index:04d}.jpg" for label, index in rows]
    pixels = np.stack([imagenet.decode(file, (3, 12, 12)) for file in files])
    assert np.array_equal(dataset.tensors().x.numpy(), pixels)
    assert dataset.value_range == (0.0, 1.0)


def test_flowers_have_the_files_and_labels_of_torchvision_part_by_part(
    flowers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision.datasets

    monkeypatch.setattr(torchvision.datasets.Flowers102, "_check_integrity", lambda self: True)
    theirs = [torchvision.datasets.Flowers102(flowers, part) for part in ("train", "val", "test")]
    dataset = load("flowers102?size=12", flowers)
    assert dataset.classes == FLOWERS == tuple(torchvision.datasets.Flowers102.classes)
    assert (
        dataset.labels.tolist() == [label for part in theirs for label in part._labels] == [6, 0, 101, 1, 4, 0, 101, 32]
    )
    files = [file for part in theirs for file in part._image_files]
    pixels = np.stack([imagenet.decode(file, (3, 12, 12)) for file in files])
    assert np.array_equal(dataset.tensors().x.numpy(), pixels)


@pytest.mark.parametrize("name", ["caltech101", "flowers102"])
@pytest.mark.parametrize("damaged", [False, True])
def test_images_are_decoded_only_when_asked_for(name: str, damaged: bool, tmp_path: Path) -> None:
    root = write_caltech(tmp_path) if name == "caltech101" else write_flowers(tmp_path)
    images = sorted(root.rglob("*.jpg"))
    last = [file for file in images if BACKGROUND not in str(file)][-1]
    if damaged:
        last.write_bytes(b"this is no image")
    facts, dataset = describe(name, root), load(name, root)
    assert facts.present and facts.shape == dataset.shape == (3, 224, 224)
    assert (facts.points, facts.classes) == (len(dataset), dataset.classes)
    assert not dataset.in_memory
    assert dataset.tensors([0]).x.shape == (1, 3, 224, 224)
    if damaged:
        with pytest.raises(BadInput, match=rf"{last.name} cannot be read"):
            dataset.tensors()


@pytest.mark.parametrize("name", ["caltech101", "flowers102"])
def test_every_usual_place_is_searched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = write_caltech if name == "caltech101" else write_flowers
    layout = LAYOUT if name == "caltech101" else "flowers-102"
    first = load(name, write(tmp_path / "a" / name)).fingerprint
    assert load(name, tmp_path / "a").fingerprint == first  # root holds the set's folder
    assert load(name, tmp_path / "a" / name / layout).fingerprint == first  # root is the authors' folder itself
    monkeypatch.setenv("ORCH_DATA", str(tmp_path / "a"))
    assert load(name).fingerprint == first
    assert load(f"{name}?size=20").fingerprint != first


@pytest.mark.parametrize(
    ("name", "points", "says"),
    [("caltech101", 8677, "101_ObjectCategories.tar.gz"), ("flowers102", 8189, "imagelabels.mat and setid.mat beside")],
)
def test_a_missing_set_says_where_it_was_looked_for_and_how_to_get_it(
    name: str, points: int, says: str, tmp_path: Path
) -> None:
    facts = describe(name, tmp_path)
    assert (facts.present, facts.points) == (False, points)
    with pytest.raises(BadInput, match=says) as caught:
        load(name, tmp_path)
    assert str(tmp_path) in str(caught.value) and "https://" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_kind_without_images_is_refused(caltech: Path) -> None:
    for file in (caltech / LAYOUT / "accordion").iterdir():
        file.unlink()
    with pytest.raises(BadInput, match=r"accordion holds no image_\*\.jpg"):
        describe("caltech101", caltech)


def test_images_without_their_tables_are_not_the_flowers(flowers: Path) -> None:
    (flowers / "flowers-102" / "setid.mat").unlink()
    assert not describe("flowers102", flowers).present


@as_one(
    "labels, parts, says",
    [
        ([0, *LABELS[1:]], {}, r"labels go from 0 to 102; allowed: 1 to 102"),
        ([103, *LABELS[1:]], {}, r"labels go from 1 to 103"),
        (LABELS, {"valid": [2, 8]}, "must name each of the 8 images"),
        (LABELS, {"tstid": [7, 3, 5]}, "must name each of the 8 images"),
        (LABELS, {"tstid": [7, 3, 5, 4, 9]}, "must name each of the 8 images"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(
    labels: list[int], parts: dict[str, list[int]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=says):
        load("flowers102", write_flowers(tmp_path, labels, **parts))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read"),
        (b"this is no table of MATLAB's" * 20, "cannot be read"),
        (b"\0" * 2**19, "has 524288 bytes, too many"),
    ],
)
def test_tables_that_are_no_tables_are_named(content: bytes, says: str, flowers: Path) -> None:
    (flowers / "flowers-102" / "imagelabels.mat").write_bytes(content)
    with pytest.raises(BadInput, match=rf"imagelabels\.mat.* {says}") as caught:
        load("flowers102", flowers)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("compressed", [False, True])
def test_tables_of_numbers_are_read_as_by_scipy(compressed: bool, tmp_path: Path) -> None:
    kinds = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
    rows = {f"{kind}_{size}": np.arange(size)[None].astype(kind) for kind in kinds for size in (1, 2, 3, 5, 60)}
    rows["long_name_of_a_table"] = np.arange(12).reshape(3, 4)
    from scipy.io import loadmat, savemat

    savemat(tmp_path / "a.mat", rows | {"text": "none", "cell": np.array([1, "a"], object)}, do_compression=compressed)
    theirs, ours = loadmat(tmp_path / "a.mat"), matlab_tables((tmp_path / "a.mat").read_bytes())
    assert set(ours) == set(rows)
    for name, row in ours.items():
        assert row.dtype == theirs[name].dtype, name
        assert row.tolist() == theirs[name].T.ravel().tolist(), name


def test_a_table_cut_or_changed_anywhere_is_read_or_refused_without_a_traceback(flowers: Path) -> None:
    table = flowers / "flowers-102" / "setid.mat"
    whole = table.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        broken = bytearray(whole[: random.integers(1, len(whole) + 1)])
        broken[random.integers(len(broken))] ^= int(random.integers(1, 256))
        table.write_bytes(broken)
        try:
            load("flowers102", flowers)
        except BadInput as error:
            refused += "\n" not in str(error)
    assert refused >= 50  # the rest is text of the header, which nothing reads


@pytest.mark.parametrize(
    "row", [{"other": np.ones((1, 7))}, {"labels": np.full((1, 7), 1.5)}, {"labels": np.array(["a"], object)}]
)
def test_tables_without_the_numbers_are_refused(row: dict[str, object], flowers: Path) -> None:
    from scipy.io import savemat

    savemat(flowers / "flowers-102" / "imagelabels.mat", row)
    with pytest.raises(BadInput, match="holds no whole numbers named 'labels'"):
        load("flowers102", flowers)

"""ImageNet in torchvision's layout, and folders of images too large for memory: decoded only when asked for."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from audits.data import image_files, imagenet, images
from audits.data.catalogue import Dataset, describe, load
from audits.data.image_files import ImageFiles
from audits.data.shards import write_shards
from audits.data.user import checked
from audits.errors import BadInput

CLASSES = ("n01440764", "n02084071", "n03000000")


def picture(number: int, size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    random = np.random.default_rng(number)
    pixels = random.integers(0, 256, (size[1] // 4 + 1, size[0] // 4 + 1, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).convert(mode)


def write_imagenet(root: Path) -> Path:
    """Write three classes with three training images and one of validation each, of several sizes and modes."""
    sizes = [(40, 30), (30, 44), (32, 32), (97, 31)]
    for row, name in enumerate(CLASSES):
        for column, size in enumerate(sizes):
            folder = root / ("val" if column == 3 else "train") / name
            folder.mkdir(parents=True, exist_ok=True)
            mode = "CMYK" if (row, column) == (1, 1) else "L" if (row, column) == (2, 0) else "RGB"
            picture(10 * row + column, size, mode).save(folder / f"{name}_{column}.JPEG", "JPEG")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_imagenet(tmp_path / "ilsvrc")


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files decoded so far, in no order."""
    names: list[str] = []
    plain = images.opened_as

    def watched(file: Path, mode: str, content: bytes | None = None) -> Image.Image:
        names.append(file.name)
        return plain(file, mode, content)

    monkeypatch.setattr(images, "opened_as", watched)
    monkeypatch.setattr(imagenet, "opened_as", watched)
    return names


def torchvisions(root: Path, size: int) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """Return images and labels as torchvision reads and prepares them, training part first."""
    import torchvision.datasets
    import torchvision.transforms.v2

    prepare = torchvision.transforms.v2.Compose(
        [
            torchvision.transforms.v2.Resize(round(size * 256 / 224)),
            torchvision.transforms.v2.CenterCrop(size),
            torchvision.transforms.v2.PILToTensor(),
        ]
    )
    parts = [torchvision.datasets.ImageFolder(root / part, prepare) for part in ("train", "val")]
    rows = [row for part in parts for row in part]
    return torch.stack([image for image, _ in rows]).numpy(), [label for _, label in rows]


def test_imagenet_is_read_and_prepared_as_by_torchvision(root: Path) -> None:
    dataset = load("imagenet?size=21", root)
    inputs, labels = torchvisions(root, 21)
    assert dataset.classes == CLASSES
    assert dataset.labels.tolist() == labels == [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2]
    assert dataset.value_range == (0.0, 1.0)
    assert np.array_equal(dataset.tensors().x.numpy(), inputs)


def test_only_the_rows_asked_for_are_decoded(root: Path, decoded: list[str]) -> None:
    dataset = load("imagenet?size=16", root)
    assert len(dataset) == 12
    assert dataset.shape == (3, 16, 16)
    assert not dataset.in_memory
    assert decoded == []
    chosen = dataset.tensors([11, 0, 11])
    assert sorted(decoded) == [f"{CLASSES[0]}_0.JPEG", f"{CLASSES[2]}_3.JPEG", f"{CLASSES[2]}_3.JPEG"]
    assert chosen.x.dtype == torch.uint8
    assert chosen.y.tolist() == [2, 0, 2]
    assert torch.equal(chosen.x, dataset.tensors().x[[11, 0, 11]])
    assert len(dataset.tensors([])) == 0


def test_descriptions_agree_with_what_is_read(root: Path, decoded: list[str]) -> None:
    facts, dataset = describe("imagenet", root), load("imagenet", root)
    assert facts.present
    assert (facts.points, facts.shape, facts.classes) == (len(dataset), dataset.shape, dataset.classes)
    assert facts.shape == (3, 224, 224)
    assert decoded == []


def test_a_missing_set_says_what_the_folder_must_hold(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    facts = describe("imagenet", tmp_path)
    assert (facts.present, facts.points) == (False, 1_331_167)
    with pytest.raises(BadInput, match=r"train/ and val/ each hold one folder of images per class") as caught:
        load("imagenet", tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_image_is_named_when_it_is_asked_for(root: Path) -> None:
    (root / "train" / CLASSES[1] / f"{CLASSES[1]}_2.JPEG").write_bytes(b"this is no image")
    dataset = load("imagenet?size=16", root)
    dataset.tensors([0, 1])
    with pytest.raises(BadInput, match=rf"{CLASSES[1]}_2\.JPEG cannot be read") as caught:
        dataset.tensors()
    assert "\n" not in str(caught.value)


def write_another_class(root: Path) -> None:
    """Write ImageNet with a class of validation only."""
    (write_imagenet(root) / "val" / "n09999999").mkdir()


def test_a_class_of_validation_only_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "ilsvrc"
    write_another_class(root)
    with pytest.raises(BadInput, match="holds the class n09999999"):
        describe("imagenet", root)


@pytest.mark.parametrize("change", ["rename", "label", "content", "shorter", "size"])
def test_the_fingerprint_depends_on_names_labels_and_contents(root: Path, change: str) -> None:
    before = load("imagenet?size=16", root).fingerprint
    folder = root / "train" / CLASSES[0]
    file = folder / f"{CLASSES[0]}_1.JPEG"
    if change == "rename":
        file.rename(folder / "other.JPEG")
    elif change == "label":
        file.rename(root / "train" / CLASSES[1] / file.name)
    elif change == "content":
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    elif change == "shorter":
        file.write_bytes(file.read_bytes()[:-1])
    after = load("imagenet?size=17" if change == "size" else "imagenet?size=16", root).fingerprint
    assert after != before


def test_the_fingerprint_does_not_depend_on_the_place_or_on_times(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copyfile)
    assert load("imagenet", tmp_path / "copy").fingerprint == load("imagenet", root).fingerprint


# Folders of images


def two_forms(root: Path, monkeypatch: pytest.MonkeyPatch, most: int = 0) -> tuple[Dataset, Dataset]:
    """Return the training folder in memory and in files."""
    kept = load(f"folder:{root / 'train'}?size=12")
    monkeypatch.setattr(images, "MOST_BYTES", most)
    return kept, load(f"folder:{root / 'train'}?size=12")


def test_a_large_folder_stays_in_its_files_and_reads_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, left = two_forms(root, monkeypatch)
    assert (kept.in_memory, left.in_memory) == (True, False)
    assert (left.shape, left.classes, len(left)) == (kept.shape, kept.classes, len(kept))
    assert torch.equal(left.tensors([8, 2, 5]).x, kept.tensors([8, 2, 5]).x)
    assert torch.equal(left.tensors().y, kept.tensors().y)


def test_a_folder_of_just_the_allowed_size_is_kept_in_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bytes_in_all = 9 * 3 * 12 * 12
    assert two_forms(root, monkeypatch, bytes_in_all)[1].in_memory
    assert not two_forms(root, monkeypatch, bytes_in_all - 1)[1].in_memory


def test_files_survive_the_way_to_another_process(root: Path) -> None:
    dataset = load("imagenet?size=16", root)
    again = pickle.loads(pickle.dumps(dataset.inputs))
    assert isinstance(again, ImageFiles)
    assert np.array_equal(again[2:4], dataset.inputs[2:4])


def test_threads_do_not_change_order_or_values(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = load("imagenet?size=16", root)
    monkeypatch.setattr(image_files, "THREADS", 1)
    monkeypatch.setattr(image_files, "IN_FLIGHT", 5)
    alone = load("imagenet?size=16", root)
    assert alone.fingerprint == together.fingerprint
    assert torch.equal(alone.tensors().x, together.tensors().x)


def test_shards_of_files_hold_their_pixels(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, left = two_forms(root, monkeypatch)
    write_shards(left, str(tmp_path / "shards"), points_per_shard=4)
    again = load(f"parquet:{tmp_path / 'shards'}")
    assert torch.equal(again.tensors().x, kept.tensors().x)
    assert again.fingerprint == kept.fingerprint


def test_a_user_may_return_a_set_that_stays_in_files(root: Path) -> None:
    dataset = load("imagenet?size=16", root)
    assert checked("python:own:data", dataset) is dataset

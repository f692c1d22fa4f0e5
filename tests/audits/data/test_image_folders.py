"""Folders of images: channels, classes and sizes, and images that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from audits.data.catalogue import describe, load
from audits.errors import BadInput
from tests.cases.families import as_one


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


@as_one("suffix, tolerance", [("jpg", 6), ("webp", 6), ("JPEG", 6), ("png", 0)])
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

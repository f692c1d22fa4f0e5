"""Views of images: the crops of torchvision, drawn by seed, epoch and point, whoever decodes and in whatever order."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import ks_2samp

from audits.data import ahead, undecoded, views
from audits.data.catalogue import load
from audits.data.image_files import ImageFiles
from audits.data.tensors import TensorSet
from audits.data.undecoded import Files, Undecoded
from audits.data.views import Views, decoded, jpeg_decoder
from audits.errors import BadInput
from tests.audits.data.test_image_folders import image_folder
from tests.audits.data.test_image_shards import packed
from tests.audits.data.test_imagenet import picture, write_imagenet

VIEWS = Views(seed=7, epoch=2, least=0.08, flip=True)


@pytest.fixture
def images(tmp_path: Path) -> ImageFiles:
    """Twelve images of several sizes and modes."""
    found = load("imagenet?size=16", write_imagenet(tmp_path / "ilsvrc")).inputs
    assert isinstance(found, ImageFiles)
    return found


@pytest.mark.parametrize("channels", [3, 1])
def test_a_view_is_torchvisions_crop_at_the_drawn_place(channels: int, images: ImageFiles) -> None:
    from torchvision.transforms import functional as torchvisions

    images = replace(images, point_shape=(channels, 16, 16))
    mirrored = 0
    for row in range(len(images)):
        with Image.open(images.root / images.files[row]) as file:
            whole = file.convert("RGB" if channels == 3 else "L")
        (left, top, right, bottom), flipped = VIEWS.box(row, *whole.size)
        found = VIEWS.image(images, row)
        assert found.shape == (channels, 16, 16)
        seen = torchvisions.resized_crop(whole, top, left, bottom - top, right - left, [16, 16])
        seen = torchvisions.hflip(seen) if flipped else seen
        assert np.abs(found.astype(int) - torchvisions.pil_to_tensor(seen).numpy()).max() <= 1, "but for rounding"
        mirrored += flipped
    assert 0 < mirrored < len(images)


@pytest.mark.parametrize(("size", "least"), [((500, 400), 0.08), pytest.param((60, 200), 0.5, marks=pytest.mark.long)])
def test_boxes_are_distributed_as_torchvisions(size: tuple[int, int], least: float) -> None:
    from torchvision.transforms import RandomResizedCrop

    torch.manual_seed(0)
    image = torch.empty(1, size[1], size[0])
    seen = Views(1, 0, least, False)
    theirs = [RandomResizedCrop.get_params(image, [least, 1.0], [3 / 4, 4 / 3]) for _ in range(2000)]
    ours = [seen.box(point, *size)[0] for point in range(2000)]
    boxes = np.array([(top, left, bottom - top, right - left) for left, top, right, bottom in ours])
    for column in range(4):
        assert ks_2samp(boxes[:, column], np.array(theirs)[:, column]).pvalue > 0.01
    assert not any(seen.box(point, *size)[1] for point in range(100)), "nothing is mirrored unless it is asked for"


def test_views_differ_by_seed_epoch_and_point_and_by_nothing_else() -> None:
    base = VIEWS.box(3, 500, 400)
    assert Views(7, 2, 0.08, True).box(3, 500, 400) == base
    others = [
        Views(8, 2, 0.08, True).box(3, 500, 400),
        Views(7, 3, 0.08, True).box(3, 500, 400),
        VIEWS.box(4, 500, 400),
    ]
    assert base not in others and len(set(others)) == 3
    shares = [mirrored for point in range(1000) for mirrored in [VIEWS.box(point, 500, 400)[1]]]
    assert abs(sum(shares) / 1000 - 0.5) < 4 * math.sqrt(0.25 / 1000)


@pytest.mark.parametrize("threads", [1, 5])
def test_batches_of_views_depend_on_no_thread_order_or_neighbour(
    threads: int, images: ImageFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {row: torch.from_numpy(VIEWS.image(images, row).copy()) for row in range(len(images))}
    monkeypatch.setattr(undecoded, "AT_ONCE", 6 - threads)
    with ThreadPoolExecutor(threads) as pool:
        monkeypatch.setattr(ahead, "threads", lambda: pool)
        ids = np.array([11, 2, 5, 0, 7])
        points = Undecoded([Files(images, ids[:3], "cpu"), Files(images, ids[3:], "cpu")])
        for parts in ([[4, 0], [1, 3], [2]], [[0, 1, 2, 3, 4]], [[2, 3], [4]]):
            data = TensorSet(points, torch.from_numpy(ids))  # type: ignore[arg-type]  # as Dataset.tensors makes it
            turns = list(data.batches([torch.tensor(part) for part in parts], VIEWS))
            found = [(x * 255).round().byte() for x, _ in turns]
            assert [y.tolist() for _, y in turns] == [[int(ids[row]) for row in part] for part in parts]
            for part, batch in zip(parts, found, strict=True):
                assert torch.equal(batch, torch.stack([expected[int(ids[row])] for row in part]))


def test_views_of_shards_are_those_of_their_files(images: ImageFiles, tmp_path: Path) -> None:
    shards = load(f"shards:{packed('imagenet?size=16', images.root, tmp_path / 'shards')}").inputs
    for row in range(len(images)):
        assert np.array_equal(VIEWS.image(shards, row), VIEWS.image(images, row))  # type: ignore[arg-type]


@pytest.mark.parametrize("torchvisions", [True, False])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("suffix", ["jpg", "png", "bmp"])
def test_pixels_at_full_size_are_pillows_whoever_decodes(
    torchvisions: bool, mode: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision.transforms import functional as torchvisions

    if torchvisions:
        assert jpeg_decoder() is not None
    else:
        monkeypatch.setattr(views, "jpeg_decoder", lambda: None)
    if mode == "CMYK" and suffix != "jpg":
        mode = "RGB"
    file = tmp_path / f"image.{suffix}"
    picture(3, (70, 45), mode).save(file)
    with Image.open(file) as image:
        for channels, wanted in ((1, "L"), (3, "RGB")):
            assert np.array_equal(decoded(file, file.read_bytes(), channels), np.asarray(image.convert(wanted)))


@pytest.mark.long
def test_a_process_that_has_imported_nothing_finds_torchvisions_decoder() -> None:
    script = "from audits.data.views import jpeg_decoder; assert jpeg_decoder() is not None"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_damaged_image_is_named(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "animals", "jpg", "RGB", (16, 16))
    file = folder / "cat" / "10.jpg"
    for content in (b"this is no image", file.read_bytes()[:300]):
        with pytest.raises(BadInput, match=r"10\.jpg cannot be read") as caught:
            decoded(file, content, 3)
        assert "\n" not in str(caught.value)

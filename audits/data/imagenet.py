"""``imagenet``: the images of ILSVRC 2012 in the folders that torchvision reads, decoded when they are asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.data.dataset import IMAGE_RANGE, Dataset, Description, unnamed
from audits.data.file_sets import EncodedSet
from audits.data.image_files import ImageFiles, Shape
from audits.data.images import SUFFIXES, class_folders, opened_as
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

PARTS = ("train", "val")
POINTS = 1_281_167 + 50_000
CLASSES = 1_000
SIDE = 224
MARGIN = 256 / 224  # the shorter side before the crop, over the side of the crop
RULE = "RGB, shorter side to 256/224 of the size (bilinear), centre crop"
LICENCE = "non-commercial research (image-net.org)"
HOW_TO_GET = (
    "register at https://image-net.org, unpack ILSVRC2012 so that train/ and val/ each hold one folder of images per "
    "class (n01440764, ...), and name the folder around them in data.root"
)


def decode(file: Path, shape: Shape, content: bytes | None = None) -> npt.NDArray[Any]:
    """Return an image as uint8 (3, S, S): the shorter side scaled to 256/224 · S, then the middle S×S.

    This is the usual preparation of test images (torchvision's Resize(256) and CenterCrop(224)), without a random crop.
    ``content``: as of ``images.decode``.
    """
    from PIL import Image

    side = shape[1]
    image = opened_as(file, "RGB", content)
    width, height = image.size
    short = round(side * MARGIN)
    scaled = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
    left, top = (round((length - side) / 2) for length in scaled)
    image = image.resize(scaled, Image.Resampling.BILINEAR).crop((left, top, left + side, top + side))
    return np.asarray(image).transpose(2, 0, 1)


def describe(request: Request) -> Description:
    """Say whether both parts are there; the files are counted, not opened."""
    side = _side(request)
    places = [place for place in request.folders() if all((place / part).is_dir() for part in PARTS)]
    if not places:
        where = [str(place) for place in request.folders()]
        return Description(
            request.name, POINTS, (3, side, side), unnamed(CLASSES), IMAGE_RANGE, where, False,
            LICENCE, HOW_TO_GET, True,
        )  # fmt: skip
    classes, files, _ = listed(places[0])
    return Description(
        request.name, len(files), (3, side, side), classes, IMAGE_RANGE, [str(places[0])], True,
        LICENCE, HOW_TO_GET, True,
    )  # fmt: skip


def load(request: Request) -> Dataset:
    """Return the images, none of which is decoded before it is asked for."""
    return encoded(request).dataset(request.name)


def encoded(request: Request) -> EncodedSet:
    """List the images, the training part first."""
    description = describe(request)
    if not description.present:
        raise description.missing()
    root = Path(description.where[0])
    classes, files, labels = listed(root)
    images = ImageFiles(root, files, (3, *description.shape[1:]), decode)  # type: ignore[arg-type]  # shape has three
    return EncodedSet(images, labels, classes, RULE)


def listed(root: Path) -> tuple[tuple[str, ...], tuple[str, ...], npt.NDArray[np.int64]]:
    """Return classes, files relative to ``root`` and labels: part by part, class by class, in order of name."""
    classes = tuple(class_folders(root / "train"))
    unknown = [name for name in class_folders(root / "val") if name not in set(classes)]
    if unknown:
        raise BadInput(f"{root / 'val'} holds the class {unknown[0]}, which {root / 'train'} does not; make both alike")
    files: list[str] = []
    labels: list[int] = []
    for part in PARTS:
        for label, name in enumerate(classes):
            found = _images_in(root / part / name)
            if part == "train" and not found:
                raise BadInput(f"class folder {root / part / name} holds no image ({', '.join(SUFFIXES)})")
            files += [f"{part}/{name}/{file}" for file in found]
            labels += [label] * len(found)
    return classes, tuple(files), np.array(labels, dtype=np.int64)


def _images_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return sorted(name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith("."))


def _side(request: Request) -> int:
    request.allow("size")
    return request.whole_number("size", SIDE, least=1)


CATALOGUE.register("imagenet")(
    Source("imagenet?size=N", "1.3 million photographs of 1 000 classes, cropped to N×N (224)", describe, load, encoded)
)

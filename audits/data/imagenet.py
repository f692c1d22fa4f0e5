"""``imagenet``: the images of ILSVRC 2012 in the folders that torchvision reads, decoded when they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.data.class_folders import class_names, files_below, is_image, read_class_folders, too_few
from audits.data.dataset import IMAGE_RANGE, Dataset, Description, unnamed
from audits.data.file_sets import EncodedSet
from audits.data.image_files import ImageFiles, Shape
from audits.data.images import opened_as
from audits.data.orientation import turned_notes
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
    classes, files, _, notes = listed(places[0])
    return Description(
        request.name, len(files), (3, side, side), classes, IMAGE_RANGE, [str(places[0])], True,
        LICENCE, HOW_TO_GET, True, tuple(f"{request.name}: {note}" for note in notes),
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
    classes, files, labels, _ = listed(root)
    images = ImageFiles(root, files, (3, *description.shape[1:]), decode)  # type: ignore[arg-type]  # shape has three
    return EncodedSet(images, labels, classes, RULE, notes=(*description.notes, *turned_notes(request.name, images)))


def listed(root: Path) -> tuple[tuple[str, ...], tuple[str, ...], npt.NDArray[np.int64], tuple[str, ...]]:
    """Return classes, files below ``root``, labels and notes: part by part, each in the order of ImageFolder."""
    train, val = read_class_folders(root / "train"), root / "val"
    found = [name for name in class_names(val) if not name.startswith(".")]
    if len(found) < 2:
        raise too_few(val, found)
    if unknown := sorted(set(found) - set(train.classes)):
        raise BadInput(f"{val} holds the class {unknown[0]}, which {root / 'train'} does not; make both alike")
    files = [f"train/{file}" for file in train.files]
    labels = list(train.labels)
    for label, name in enumerate(train.classes):
        if (val / name).is_dir():
            more = [f"val/{file}" for file in files_below(val, name) if is_image(file)]
            files += more
            labels += [label] * len(more)
    return train.classes, tuple(files), np.array(labels, dtype=np.int64), tuple(train.notes())


def _side(request: Request) -> int:
    request.allow("size")
    return request.whole_number("size", SIDE, least=1)


CATALOGUE.register("imagenet")(
    Source("imagenet?size=N", "1.3 million photographs of 1 000 classes, cropped to N×N (224)", describe, load, encoded)
)

"""``caltech101``: photographs of 101 kinds of object in the authors' folders, decoded when they are asked for.

Fei-Fei, Fergus and Perona, "Learning Generative Visual Models from Few Training Examples", 2004.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from audits.data.class_folders import class_names, too_few
from audits.data.dataset import IMAGE_RANGE, Dataset, Description, unnamed
from audits.data.file_sets import EncodedSet
from audits.data.image_files import ImageFiles
from audits.data.imagenet import RULE, SIDE, decode
from audits.data.orientation import turned_notes
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

LAYOUT = "101_ObjectCategories"
BACKGROUND = "BACKGROUND_Google"  # 467 images found on the Web: no class, and left out
POINTS = 9144 - 467
CLASSES = 101
LICENCE = "as data.caltech.edu states it (F.-F. Li, M. Andreetto, M. Ranzato and P. Perona)"
HOW_TO_GET = (
    "of https://data.caltech.edu/records/mzrjq-6wc02 unpack caltech-101.zip and the 101_ObjectCategories.tar.gz "
    "inside, so that the folder 101_ObjectCategories holds one folder of images per class"
)


def describe(request: Request) -> Description:
    """Say whether the folder is there; the files are counted, not opened."""
    request.allow("size")
    side = request.whole_number("size", SIDE, least=1)
    places = [place for place in request.places(LAYOUT) if place.name == LAYOUT]
    found = next((place for place in places if place.is_dir()), None)
    classes, files, _ = listed(found) if found else (unnamed(CLASSES), (), None)
    points, where = (len(files), [str(found)]) if found else (POINTS, [str(place) for place in places])
    return Description(
        request.name, points, (3, side, side), classes, IMAGE_RANGE, where, found is not None, LICENCE, HOW_TO_GET, True
    )


def load(request: Request) -> Dataset:
    """Return the images, none of which is decoded before it is asked for."""
    return encoded(request).dataset(request.name)


def encoded(request: Request) -> EncodedSet:
    """List the images class by class.

    Images are prepared as those of ``imagenet`` are. The authors give no training part. Published counts of 9 144
    images (5 486 + 3 658 in Chen et al., 2021) include the background folder.
    """
    description = describe(request)
    if not description.present:
        raise description.missing()
    root, side = Path(description.where[0]), description.shape[1]
    classes, files, labels = listed(root)
    images = ImageFiles(root, files, (3, side, side), decode)
    return EncodedSet(images, labels, classes, RULE, notes=turned_notes(request.name, images))


def listed(root: Path) -> tuple[tuple[str, ...], tuple[str, ...], npt.NDArray[np.int64]]:
    """Return classes, files relative to ``root`` and labels, class by class, in order of name, as torchvision does."""
    classes = tuple(name for name in class_names(root) if name != BACKGROUND and not name.startswith("."))
    if len(classes) < 2:
        raise too_few(root, classes)
    files: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        found = sorted(file.name for file in (root / name).glob("image_*.jpg"))
        if not found:
            raise BadInput(f"class folder {root / name} holds no image_*.jpg; unpack the authors' archive anew")
        files += [f"{name}/{file}" for file in found]
        labels += [label] * len(found)
    return classes, tuple(files), np.array(labels, dtype=np.int64)


CATALOGUE.register("caltech101")(
    Source(
        "caltech101?size=N", "8 677 photographs of 101 kinds of object, cropped to N×N (224)", describe, load, encoded
    )
)

"""``flowers102``: Oxford's 102 flower categories in the authors' files, decoded when they are asked for.

Nilsback and Zisserman, "Automated Flower Classification over a Large Number of Classes", 2008.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.file_sets import EncodedSet
from audits.data.image_files import ImageFiles
from audits.data.imagenet import RULE, SIDE, decode
from audits.data.orientation import turned_notes
from audits.data.regular import content_of
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

LAYOUT = "flowers-102"
PARTS = ("trnid", "valid", "tstid")  # 1 020, 1 020 and 6 149 images; published results differ in which they train on
POINTS = 8189
MOST_BYTES = 2**18  # of a .mat file; the authors' have less than 2**14
MATRIX, COMPRESSED = 14, 15  # types of elements in MATLAB's format
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
NUMERIC_CLASSES = range(6, 16)  # of arrays: double, single, and whole numbers of 8 to 64 bits
LICENCE = "none stated (M.-E. Nilsback and A. Zisserman)"
HOW_TO_GET = (
    "of https://www.robots.ox.ac.uk/~vgg/data/flowers/102/ unpack 102flowers.tgz, which makes jpg/, and put "
    "imagelabels.mat and setid.mat beside that folder"
)
CLASSES = (
    "pink primrose", "hard-leaved pocket orchid", "canterbury bells", "sweet pea", "english marigold", "tiger lily",
    "moon orchid", "bird of paradise", "monkshood", "globe thistle", "snapdragon", "colt's foot", "king protea",
    "spear thistle", "yellow iris", "globe-flower", "purple coneflower", "peruvian lily", "balloon flower",
    "giant white arum lily", "fire lily", "pincushion flower", "fritillary", "red ginger", "grape hyacinth",
    "corn poppy", "prince of wales feathers", "stemless gentian", "artichoke", "sweet william", "carnation",
    "garden phlox", "love in the mist", "mexican aster", "alpine sea holly", "ruby-lipped cattleya", "cape flower",
    "great masterwort", "siam tulip", "lenten rose", "barbeton daisy", "daffodil", "sword lily", "poinsettia",
    "bolero deep blue", "wallflower", "marigold", "buttercup", "oxeye daisy", "common dandelion", "petunia",
    "wild pansy", "primula", "sunflower", "pelargonium", "bishop of llandaff", "gaura", "geranium", "orange dahlia",
    "pink-yellow dahlia?", "cautleya spicata", "japanese anemone", "black-eyed susan", "silverbush",
    "californian poppy", "osteospermum", "spring crocus", "bearded iris", "windflower", "tree poppy", "gazania",
    "azalea", "water lily", "rose", "thorn apple", "morning glory", "passion flower", "lotus", "toad lily", "anthurium",
    "frangipani", "clematis", "hibiscus", "columbine", "desert-rose", "tree mallow", "magnolia", "cyclamen",
    "watercress", "canna lily", "hippeastrum", "bee balm", "ball moss", "foxglove", "bougainvillea", "camellia",
    "mallow", "mexican petunia", "bromelia", "blanket flower", "trumpet creeper", "blackberry lily",
)  # fmt: skip


def describe(request: Request) -> Description:
    """Say whether the files are there; labels are read, images are not."""
    request.allow("size")
    side = request.whole_number("size", SIDE, least=1)
    places = request.places(LAYOUT)
    found = next((place for place in places if complete(place)), None)
    points = POINTS if found is None else len(listed(found)[0])
    where = [str(found)] if found else [str(place) for place in places if place.name == LAYOUT]
    return Description(
        request.name, points, (3, side, side), CLASSES, IMAGE_RANGE, where, found is not None, LICENCE, HOW_TO_GET, True
    )


def load(request: Request) -> Dataset:
    """Return the images, none of which is decoded before it is asked for."""
    return encoded(request).dataset(request.name)


def encoded(request: Request) -> EncodedSet:
    """List the images: training, validation and test part, each in the authors' order."""
    description = describe(request)
    if not description.present:
        raise description.missing()
    root, side = Path(description.where[0]), description.shape[1]
    files, labels = listed(root)
    images = ImageFiles(root, files, (3, side, side), decode)
    return EncodedSet(images, labels, CLASSES, RULE, notes=turned_notes(request.name, images))


def complete(folder: Path) -> bool:
    """Return whether ``folder`` holds the images and both tables."""
    return (folder / "jpg").is_dir() and all((folder / name).is_file() for name in ("imagelabels.mat", "setid.mat"))


def listed(root: Path) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return files relative to ``root`` and labels 0 to 101; BadInput when the tables do not fit together."""
    (labels,) = numbers(root / "imagelabels.mat", ("labels",))
    ids = np.concatenate(numbers(root / "setid.mat", PARTS))
    if not np.array_equal(np.sort(ids), np.arange(1, len(labels) + 1)):
        raise BadInput(
            f"{root / 'setid.mat'}: {', '.join(PARTS)} must name each of the {len(labels)} images of imagelabels.mat "
            "once, from 1 on; take both files from one source"
        )
    if len(labels) and not 1 <= labels.min() <= labels.max() <= len(CLASSES):
        raise BadInput(
            f"{root / 'imagelabels.mat'}: labels go from {labels.min()} to {labels.max()}; allowed: 1 to 102"
        )
    return tuple(f"jpg/image_{number:05d}.jpg" for number in ids.tolist()), labels[ids - 1] - 1


def numbers(file: Path, names: tuple[str, ...]) -> list[npt.NDArray[np.int64]]:
    """Return the rows of whole numbers ``names`` of a MATLAB file as int64 (N,).

    The format is read here, as numbers and nothing else: ``scipy.io.loadmat`` executes nothing either, but a file with
    three changed bytes crashed it, and Python with it (SciPy 1.17). BadInput when the file is damaged or lacks a name.
    """
    if (size := file.stat().st_size) > MOST_BYTES:
        raise BadInput(f"{file} has {size} bytes, too many for the authors' table ({MOST_BYTES} at most); take theirs")
    try:
        found = matlab_tables(content_of(file))
    except (OSError, ValueError, zlib.error) as error:
        raise BadInput(f"{file} cannot be read ({error}); take the authors' file") from error
    for name in names:
        if name not in found or not np.isfinite(found[name]).all() or (found[name] % 1).any():
            raise BadInput(f"{file} holds no whole numbers named {name!r}; take the authors' file")
    return [found[name].astype(np.int64) for name in names]


def matlab_tables(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Return the real numeric arrays of a file of MATLAB 5 to 7 by name, each as one row (column by column).

    Source: MathWorks, "MAT-File Format", level 5. Raises ValueError or ``zlib.error`` for other contents.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise ValueError("it is no file of MATLAB 5 to 7")
    found: dict[str, npt.NDArray[Any]] = {}
    for kind, data in elements(content[128:], order):
        if kind == COMPRESSED:
            kind, data = next(elements(zlib.decompressobj().decompress(data, MOST_BYTES), order), (0, b""))
        if kind != MATRIX:
            continue
        parts = list(elements(data, order))
        if len(parts) == 4 and parts[3][0] in NUMBERS and len(parts[0][1]) == 8:
            flags = struct.unpack_from(f"{order}I", parts[0][1])[0]
            if flags & 0xFF in NUMERIC_CLASSES:
                found[parts[2][1].decode("latin-1")] = np.frombuffer(parts[3][1], order + NUMBERS[parts[3][0]])
    return found


def elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield type and bytes of the data elements that follow each other in ``content``."""
    place = 0
    while place + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, place)
        start, end = place + 8, place + 8 + size
        following = end if kind == COMPRESSED else end + -size % 8
        if kind >> 16:  # up to four bytes lie in the tag itself
            start, end, following = place + 4, place + 4 + min(kind >> 16, 4), place + 8
        if end > len(content):
            raise ValueError("it ends too early")
        yield kind & 0xFFFF, content[start:end]
        place = following


CATALOGUE.register("flowers102")(
    Source("flowers102?size=N", "8 189 photographs of 102 flowers, cropped to N×N (224)", describe, load, encoded)
)

"""``folder:PATH``: images in one folder a class (the ImageFolder layout), read by Pillow.

Up to 1 GiB of decoded images are kept in memory; larger sets stay in their files and are decoded when asked for.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.data import regular
from audits.data.class_folders import read_class_folders
from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.file_sets import EncodedSet
from audits.data.image_files import ImageFiles, Shape
from audits.data.lfs_pointers import check_fetched
from audits.data.remembered import remembered
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "PPM", "BMP", "WEBP", "TIFF", "GIF")
"""That are read; files count as images by their endings, so a GIF counts if it is called .jpg."""
GREY = ("1", "L", "LA")
ABOUT = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")
"""Where Pillow keeps what may give the orientation of an image."""
ORIENTATION = 0x0112
MOST_PIXELS = 64 * 10**6
"""Of an image, by its header: a file of some kilobytes can claim to hold more than any memory."""
MOST_BYTES = 2**30  # of decoded images that are kept in memory; more stay in their files
RULE = "grey or RGB, scaled to the shape (bilinear)"


@dataclass(frozen=True)
class Listing:
    """The images of a folder: ``files`` and their ``labels`` in order, ``shape`` (C, H, W) after scaling.

    ``notes``: what is left out or not applied, without the name of the data set.
    """

    classes: tuple[str, ...]
    files: tuple[Path, ...]
    labels: tuple[int, ...]
    shape: Shape
    notes: tuple[str, ...] = ()


def list_images(folder: Path, size: int | None = None) -> Listing:
    """Return the images below ``folder``, whose sub-folders are the classes, in the order of torchvision's ImageFolder.

    Only headers are read, once per machine (``remembered``). Grey images give one channel; when any is coloured, all
    are read as three. BadInput as of ``read_class_folders``, and when an image is unreadable, or sizes differ and
    ``size`` is not given.
    """
    found = read_class_folders(folder)
    files = tuple(folder / file for file in found.files)
    question = f"headers{' of one size' if size is None else ''}, orientation and pages"
    channels, *first, turned, paged = remembered(question, folder, found.files, lambda: _headers(folder, files, size))
    width, height = first if size is None else (size, size)
    notes = list(found.notes())
    if turned:
        notes.append(turned_words(turned, len(files), len(files)))
    if paged:
        notes.append(
            f"{paged} of {len(files)} images {'has' if paged == 1 else 'have'} several pages or frames; the first is "
            "read, as by ImageFolder"
        )
    return Listing(found.classes, files, found.labels, (channels, height, width), tuple(notes))


def turned_words(turned: int, looked: int, images: int) -> str:
    """Return in words how many of the ``looked``-at images, of so many in all, have an orientation."""
    among = f"{looked} images" if looked == images else f"{looked} images that were looked at, among {images},"
    has = "has" if turned == 1 else "have"
    return f"{turned} of {among} {has} an EXIF orientation, which is not applied, as in torchvision's ImageFolder"


def _headers(folder: Path, files: Sequence[Path], size: int | None) -> tuple[int, int, int, int, int]:
    """Return the channels of all images, width and height of the first, and how many are turned and have pages."""
    first, channels, turned, paged = None, 1, 0, 0
    for file in files:
        with opened(file) as image:
            here, more = size_and_channels(image, file)
            turned += is_turned(image)
            paged += has_pages(image)
        first = first or here
        channels = max(channels, more)
        if size is None and here != first:
            raise BadInput(
                f"{file} is {here[0]}×{here[1]} but {files[0]} is {first[0]}×{first[1]}; "
                f"have all scaled with folder:{folder}?size=N"
            )
    assert first is not None, "every class folder holds an image"
    return channels, *first, turned, paged


def header(file: Path, content: bytes | None = None) -> tuple[tuple[int, int], int]:
    """Return the size (width, height) and the number of channels."""
    with opened(file, content) as image:
        return size_and_channels(image, file)


def size_and_channels(image: Image, file: Path) -> tuple[tuple[int, int], int]:
    """Return the size (width, height) and the number of channels; BadInput for more than 8 bits a sample."""
    if image.mode[0] in "IF":
        raise BadInput(f"{file} has more than 8 bits a sample (mode {image.mode}); convert it to 8 bits")
    return image.size, 1 if image.mode in GREY else 3


def is_turned(image: Image) -> bool:
    """Say whether EXIF or XMP ask for an image to be turned or mirrored, and decoding it does not.

    Pillow does so for TIFF alone.
    """
    if image.format == "TIFF" or not any(field in image.info for field in ABOUT):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            return image.getexif().get(ORIENTATION) in range(2, 9)
    except Exception:  # damaged facts about an image can make Pillow raise anything; its pixels may be whole
        return False


def has_pages(image: Image) -> bool:
    """Say whether an image has several pages or frames; further views beside a photograph (MPO) are none."""
    try:
        return image.format != "MPO" and bool(getattr(image, "is_animated", False))
    except Exception:  # as above: some formats read on to find out
        return False


def decode(file: Path, shape: Shape, content: bytes | None = None) -> npt.NDArray[Any]:
    """Return an image as uint8 ``shape`` (C, H, W), scaled to it where it differs (aspect ratio not kept).

    ``content``: the bytes of an image that is no file of its own; ``file`` then is what messages call it.
    """
    from PIL import Image

    channels, height, width = shape
    pixels = opened_as(file, "L" if channels == 1 else "RGB", content)
    if pixels.size != (width, height):
        pixels = pixels.resize((width, height), Image.Resampling.BILINEAR)
    array = np.asarray(pixels)
    return array[None] if channels == 1 else array.transpose(2, 0, 1)


def opened_as(file: Path, mode: str, content: bytes | None = None) -> Image:
    """Return the decoded image in Pillow's ``mode`` ("L": grey, "RGB"); BadInput when it is damaged."""
    with opened(file, content) as image:
        try:
            return image.convert(mode)
        except Exception as error:  # a damaged file can make Pillow's decoders raise anything
            raise unreadable(file, error) from error


@contextmanager
def opened(file: Path, content: bytes | None = None) -> Iterator[Image]:
    """Yield the image with its header read; BadInput when that is damaged or tells of too many pixels.

    The file is opened once, so that what is read is what was found to be a file.
    """
    from PIL import Image

    with ExitStack() as stack:
        try:
            stream: IO[bytes] = regular.opened(file) if content is None else io.BytesIO(content)
            image = Image.open(stack.enter_context(stream), formats=FORMATS)
        except Image.DecompressionBombError:
            raise BadInput(f"image {file} {TOO_LARGE}") from None
        except Exception as error:  # as above
            check_fetched(file if content is None else content, f"image {file}")
            raise unreadable(file, error) from error
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise BadInput(f"image {file} is {width}×{height} and {TOO_LARGE}")
        yield image


TOO_LARGE = f"has more than {MOST_PIXELS // 10**6} megapixels, the most that are read; scale it down, or remove it"


def unreadable(file: Path, error: Exception) -> BadInput:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):  # which names an object where there is no file
        return BadInput(f"image {file} cannot be read (no image of a known format); remove or replace it")
    said = next(iter(str(error).splitlines()), type(error).__name__)
    return BadInput(f"image {file} cannot be read ({said}); remove or replace it")


def _size(request: Request) -> int | None:
    request.allow("size")
    return request.whole_number("size", 0, least=1) if "size" in request.options else None


def _description(request: Request, listing: Listing | None) -> Description:
    how_to_get = "give a folder that holds one folder of images per class"
    where = [str(request.local_path())]
    if listing is None:
        return Description(request.name, 0, (), (), IMAGE_RANGE, where, False, "the owner's", how_to_get)
    return Description(
        request.name, len(listing.files), listing.shape, listing.classes, IMAGE_RANGE, where, True,
        "the owner's", how_to_get, len(listing.files) * math.prod(listing.shape) > MOST_BYTES, noted(request, listing),
    )  # fmt: skip


def noted(request: Request, listing: Listing) -> tuple[str, ...]:
    """Return the notes of a folder, which name it."""
    return tuple(f"{request.name}: {note}" for note in listing.notes)


def _describe(request: Request) -> Description:
    size = _size(request)
    folder = request.local_path()
    return _description(request, list_images(folder, size) if folder.is_dir() else None)


def _load(request: Request) -> Dataset:
    return encoded(request).dataset(request.name)


def encoded(request: Request) -> EncodedSet:
    """List the images; only headers are read."""
    size = _size(request)
    folder = request.local_path()
    if not folder.is_dir():
        raise _description(request, None).missing()
    listing = list_images(folder, size)
    labels = np.array(listing.labels, dtype=np.int64)
    names = tuple(file.relative_to(folder).as_posix() for file in listing.files)
    images = ImageFiles(folder, names, listing.shape, decode)
    return EncodedSet(images, labels, listing.classes, RULE, MOST_BYTES, notes=noted(request, listing))


CATALOGUE.register("folder")(
    Source("folder:PATH?size=N", "images, one folder a class; size scales them to N×N", _describe, _load, encoded)
)

"""``folder:PATH``: images in one folder a class (the ImageFolder layout), read by Pillow.

Up to 1 GiB of decoded images are kept in memory; larger sets stay in their files and are decoded when asked for.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.file_sets import EncodedSet
from audits.data.image_files import ImageFiles, Shape
from audits.data.remembered import remembered
from audits.data.source import CATALOGUE, Request, Source
from audits.errors import BadInput

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".jpg", ".jpeg", ".png", ".pgm", ".ppm", ".bmp", ".webp")
FORMATS = ("JPEG", "PNG", "PPM", "BMP", "WEBP")
GREY = ("1", "L", "LA")
MOST_PIXELS = 64 * 10**6
"""Of an image, by its header: a file of some kilobytes can claim to hold more than any memory."""
MOST_BYTES = 2**30  # of decoded images that are kept in memory; more stay in their files
RULE = "grey or RGB, scaled to the shape (bilinear)"


@dataclass(frozen=True)
class Listing:
    """The images of a folder: ``files`` and their ``labels`` in order, ``shape`` (C, H, W) after scaling."""

    classes: tuple[str, ...]
    files: tuple[Path, ...]
    labels: tuple[int, ...]
    shape: Shape


def list_images(folder: Path, size: int | None = None) -> Listing:
    """Return the images below ``folder``, whose sub-folders are the classes, both in order of name.

    Only headers are read, once per machine (``remembered``). Grey images give one channel; when any is coloured, all
    are read as three. BadInput when there are fewer than two classes, a class is empty, an image is unreadable, or
    sizes differ and ``size`` is not given.
    """
    names = class_folders(folder)
    files: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        found = _images_below(folder / name)
        if not found:
            raise BadInput(f"class folder {folder / name} holds no image ({', '.join(SUFFIXES)})")
        files += found
        labels += [label] * len(found)
    below = [file.relative_to(folder).as_posix() for file in files]
    question = "headers of one size" if size is None else "headers"
    channels, *first = remembered(question, folder, below, lambda: _headers(folder, files, size))
    width, height = first if size is None else (size, size)
    return Listing(tuple(names), tuple(files), tuple(labels), (channels, height, width))


def _headers(folder: Path, files: Sequence[Path], size: int | None) -> tuple[int, int, int]:
    """Return the channels of all images, and width and height of the first."""
    first, channels = header(files[0])
    for file in files[1:]:
        here, more = header(file)
        channels = max(channels, more)
        if size is None and here != first:
            raise BadInput(
                f"{file} is {here[0]}×{here[1]} but {files[0]} is {first[0]}×{first[1]}; "
                f"have all scaled with folder:{folder}?size=N"
            )
    return channels, *first


def class_folders(folder: Path) -> list[str]:
    """Return the names of the sub-folders of ``folder``, sorted; BadInput when there are fewer than two."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if len(names) < 2:
        raise BadInput(f"{folder} holds {len(names)} class folders; at least two are needed, each full of images")
    return names


def _images_below(folder: Path) -> list[Path]:
    return sorted(
        Path(parent) / name
        for parent, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(SUFFIXES) and not name.startswith(".")
    )


def header(file: Path, content: bytes | None = None) -> tuple[tuple[int, int], int]:
    """Return the size (width, height) and the number of channels."""
    with opened(file, content) as image:
        if image.mode[0] in "IF":
            raise BadInput(f"{file} has more than 8 bits a sample (mode {image.mode}); convert it to 8 bits")
        return image.size, 1 if image.mode in GREY else 3


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


def opened(file: Path, content: bytes | None = None) -> Image:
    """Return the image with its header read; BadInput when that is damaged or tells of too many pixels."""
    from PIL import Image

    try:
        image = Image.open(file if content is None else io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise BadInput(f"image {file} {TOO_LARGE}") from None
    except Exception as error:  # as above
        raise unreadable(file, error) from error
    width, height = image.size
    if width * height > MOST_PIXELS:
        image.close()
        raise BadInput(f"image {file} is {width}×{height} and {TOO_LARGE}")
    return image


TOO_LARGE = f"has more than {MOST_PIXELS // 10**6} megapixels, the most that are read; scale it down, or remove it"


def unreadable(file: Path, error: Exception) -> BadInput:
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
        "the owner's", how_to_get, len(listing.files) * math.prod(listing.shape) > MOST_BYTES,
    )  # fmt: skip


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
    return EncodedSet(ImageFiles(folder, names, listing.shape, decode), labels, listing.classes, RULE, MOST_BYTES)


CATALOGUE.register("folder")(
    Source("folder:PATH?size=N", "images, one folder a class; size scales them to N×N", _describe, _load, encoded)
)

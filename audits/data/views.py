"""Random crops and mirrorings of images at full size, each drawn by seed, epoch and point alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audits.data.image_files import Images
from audits.data.images import opened, opened_as, unreadable
from audits.data.regular import content_of

if TYPE_CHECKING:
    import torch

ATTEMPTS = 10
RATIO = (3 / 4, 4 / 3)  # of width and height


@dataclass(frozen=True)
class Views:
    """How the images of one epoch are seen: random parts of them, brought to the shape of a point.

    ``least``: the smallest share of an image's area that is seen, the largest is all of it; ``flip``: half of the
    images are mirrored. A view depends on ``seed``, ``epoch`` and the point alone: on no order, and on no thread.
    """

    seed: int
    epoch: int
    least: float
    flip: bool

    def box(self, point: int, width: int, height: int) -> tuple[tuple[int, int, int, int], bool]:
        """Return what is seen of an image, (left, top, right, bottom), and whether it is mirrored.

        The area is uniform between ``least`` and all, the logarithm of the ratio of the sides uniform between 3/4 and
        4/3, the place uniform; after ten draws that do not fit, the middle is seen (torchvision's RandomResizedCrop,
        after Szegedy et al., "Going Deeper with Convolutions", 2014).
        """
        generator = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, point, self.epoch]))
        draws = generator.random((ATTEMPTS, 4))
        mirrored = self.flip and bool(generator.random() < 0.5)
        low, high = map(math.log, RATIO)
        for area, ratio, top, left in draws.tolist():
            target = width * height * (self.least + (1 - self.least) * area)
            ratio = math.exp(low + (high - low) * ratio)
            w, h = round(math.sqrt(target * ratio)), round(math.sqrt(target / ratio))
            if 0 < w <= width and 0 < h <= height:
                x, y = int(left * (width - w + 1)), int(top * (height - h + 1))
                return (x, y, x + w, y + h), mirrored
        w, h = width, height
        if width / height < RATIO[0]:
            h = round(width / RATIO[0])
        elif width / height > RATIO[1]:
            w = round(height * RATIO[1])
        x, y = (width - w) // 2, (height - h) // 2
        return (x, y, x + w, y + h), mirrored

    def image(self, images: Images, row: int) -> npt.NDArray[np.uint8]:
        """Return the view of a row of ``images``, uint8 (C, H, W), scaled by antialiased bilinear interpolation.

        It is torch's own, in whole numbers: within 1 of Pillow's, in two fifths of its time. BadInput when the image
        cannot be decoded.
        """
        import torch
        import torch.nn.functional as F

        file, content = images.encoded(row)
        channels, height, width = images.point_shape
        pixels = decoded(file, content_of(file) if content is None else content, channels)
        box, mirrored = self.box(row, pixels.shape[1], pixels.shape[0])
        part = np.array(pixels[box[1] : box[3], box[0] : box[2]], order="C")  # by NumPy: torch would start threads
        tensor = torch.from_numpy(part.reshape(*part.shape[:2], channels)).permute(2, 0, 1)[None]
        scaled: npt.NDArray[np.uint8] = F.interpolate(tensor, (height, width), mode="bilinear", antialias=True)[
            0
        ].numpy()
        return scaled[..., ::-1] if mirrored else scaled


def decoded(file: Path, content: bytes, channels: int) -> npt.NDArray[Any]:
    """Return an image at full size, uint8 (H, W), or (H, W, 3) for three ``channels``; BadInput when it is damaged.

    Coloured JPEGs go through torchvision's decoder where there is one: the same library as Pillow's, and the same
    pixels, in two thirds of the time.
    """
    with opened(file, content) as image:
        plain = channels == 3 and (image.format, image.mode) == ("JPEG", "RGB")
    decode = jpeg_decoder() if plain else None
    if decode is None:
        return np.asarray(opened_as(file, "L" if channels == 1 else "RGB", content))
    try:
        pixels: npt.NDArray[Any] = decode(content).permute(1, 2, 0).numpy()
    except RuntimeError as error:
        raise unreadable(file, error) from error
    return pixels


@functools.cache
def jpeg_decoder() -> Callable[[bytes], torch.Tensor] | None:
    """Return torchvision's decoder of JPEGs, bytes to uint8 (3, H, W); None where it has none, as later versions may.

    It is the operator itself: the function around it warns at each call that it will go.
    """
    import torch

    try:
        from torchvision.io import ImageReadMode  # which loads the operator

        operator, mode = torch.ops.image.decode_jpeg, ImageReadMode.RGB.value
    except (ImportError, AttributeError):
        return None

    def decode(content: bytes) -> torch.Tensor:
        found: torch.Tensor = operator(torch.frombuffer(bytearray(content), dtype=torch.uint8), mode, False)
        return found

    return decode

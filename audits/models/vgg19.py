"""VGG-19 (Simonyan and Zisserman, arXiv 1409.1556): VGG-16 with a fourth convolution in its last three blocks each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.models.base import MODELS
from audits.models.vgg16 import VGG16

BLOCKS = ((1, 1), (2, 2), (4, 4, 4, 4), (8, 8, 8, 8), (8, 8, 8, 8))  # channels in units of ``width``


@MODELS.register("vgg19")
@dataclass(frozen=True)
class VGG19(VGG16):
    """Sixteen 3×3 convolutions in five blocks with 2×2 pooling, then a classifier; ``width`` channels at first.

    Settings, names of the parameters and initial weights as in ``VGG16``; layer for layer torchvision's ``vgg19``
    (``norm`` "none") and ``vgg19_bn`` ("batch") with ``stem`` "imagenet".
    """

    blocks: ClassVar[tuple[tuple[int, ...], ...]] = BLOCKS

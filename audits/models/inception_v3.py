"""Inception v3 (Szegedy et al., arXiv 1512.00567): torchvision's, without its auxiliary classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from torch import nn

from audits.errors import BadInput
from audits.models.base import MODELS, Architecture, image_shape
from audits.models.resnet50 import he_normal

WIDTH = 32  # channels of the first convolution in the paper
STEP = 2  # all of the paper's widths are multiples of 16, so the first may be any multiple of 2
SMALLEST = 75  # side of the smallest image of which the last stage still sees one pixel
COLOURS = 3  # inputs of torchvision's first convolution, and of no other


@MODELS.register("inception_v3")
@dataclass(frozen=True)
class InceptionV3(Architecture):
    """Five convolutions, eleven Inception blocks and a linear layer; ``width`` channels at first (32 in the paper).

    The paper's images are 299×299; 75×75 is the least. The auxiliary classifier, which torchvision uses in training
    only, is left out: one training loop fits all architectures. Weights are drawn as in ``ResNet50``, not by
    torchvision's truncated normal: behind every convolution stands a BatchNorm, which takes the scale out, but in eval
    mode a model of few training steps would answer with numbers beyond all bounds. ``dropout`` precedes the linear
    layer (torchvision's 0.5). Parameters have torchvision's names.
    """

    recordable: ClassVar[bool] = True

    width: int = WIDTH
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if self.width < STEP or self.width % STEP:
            raise BadInput(f"model.settings.width is {self.width}; allowed: multiples of {STEP}, {WIDTH} in the paper")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"model.settings.dropout is {self.dropout}; allowed: 0 up to, but not including, 1")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        from torchvision.models import Inception3

        channels, height, breadth = image_shape(self.name, shape)
        if min(height, breadth) < SMALLEST:
            raise BadInput(
                f"model.name: inception_v3 cannot read {height}×{breadth} images; give images of "
                f"{SMALLEST}×{SMALLEST} or more (?size=N scales them), or use resnet50"
            )
        model: nn.Module = Inception3(
            num_classes=classes,
            aux_logits=False,
            init_weights=False,
            dropout=self.dropout,
            inception_blocks=blocks(self.width, channels),
        )
        if self.width != WIDTH:
            model.fc = nn.Linear(2048 // WIDTH * self.width, classes)
        return he_normal(model)


def blocks(width: int, channels: int) -> list[Callable[..., nn.Module]]:
    """Return torchvision's seven kinds of block, every width scaled by ``width``/32, reading ``channels`` at first."""
    from torchvision.models import inception

    def convolution(inputs: int, outputs: int, **settings: Any) -> nn.Module:
        read = channels if inputs == COLOURS else inputs * width // WIDTH
        made: nn.Module = inception.BasicConv2d(read, outputs * width // WIDTH, **settings)
        return made

    kinds = ("InceptionA", "InceptionB", "InceptionC", "InceptionD", "InceptionE", "InceptionAux")
    return [convolution, *(partial(getattr(inception, kind), conv_block=convolution) for kind in kinds)]

"""VGG-16 (Simonyan and Zisserman, arXiv 1409.1556), in torchvision's layout, for small or for large images."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from audits.errors import BadInput
from audits.models.base import MODELS, Architecture, check_choice, image_shape
from audits.models.normalisation import NORMS, Norm, normalisation

BLOCKS = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))  # channels in units of ``width``; a pooling behind each
HIDDEN = 64  # units of each hidden layer of the ImageNet classifier, in units of ``width``: 4096 at width 64


@MODELS.register("vgg16")
@dataclass(frozen=True)
class VGG16(Architecture):
    """Thirteen 3×3 convolutions in five blocks with 2×2 pooling, then a classifier; ``width`` channels at first.

    ``stem`` "cifar" ends in one linear layer on the pooled features, "imagenet" in the paper's three (4096 hidden units
    at width 64). ``norm`` stands behind every convolution; "none" is the paper's, "group" what private training needs.
    ``dropout`` null means torchvision's 0.5 in the ImageNet classifier and none in the other. Parameters have the names
    and the initial distribution of torchvision's ``vgg16`` and ``vgg16_bn``. Its class itself is not used: it makes
    the 120 million weights of the large classifier before any other can take their place.
    """

    recordable: ClassVar[bool] = True

    blocks: ClassVar[tuple[tuple[int, ...], ...]] = BLOCKS

    width: int = 64
    stem: Literal["cifar", "imagenet"] = "cifar"
    norm: Norm = "batch"
    dropout: float | None = None

    def __post_init__(self) -> None:
        if self.width < 1:
            raise BadInput(f"model.settings.width is {self.width}; it must be 1 or more")
        check_choice("stem", self.stem, ("cifar", "imagenet"))
        check_choice("norm", self.norm, NORMS)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise BadInput(f"model.settings.dropout is {self.dropout}; allowed: 0 up to, but not including, 1, or null")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, breadth = image_shape(self.name, shape)
        if min(height, breadth) < 32:
            raise BadInput(
                f"model.name: {self.name} halves images five times and cannot read {height}×{breadth}; "
                "give images of 32×32 or more, or use resnet18 or cnn"
            )
        side = 1 if self.stem == "cifar" else 7
        model = nn.Sequential(
            OrderedDict(
                features=self._features(channels),
                avgpool=nn.AdaptiveAvgPool2d(side),
                flatten=nn.Flatten(),
                classifier=self._classifier(8 * self.width * side**2, classes),
            )
        )
        initialise(model)
        return model

    def _features(self, channels: int) -> nn.Sequential:
        parts: list[nn.Module] = []
        for block in self.blocks:
            for factor in block:
                out = factor * self.width
                parts.append(nn.Conv2d(channels, out, 3, padding=1))
                parts += [normalisation(self.norm, out)] if self.norm != "none" else []
                parts.append(nn.ReLU())
                channels = out
            parts.append(nn.MaxPool2d(2))
        return nn.Sequential(*parts)

    def _classifier(self, width: int, classes: int) -> nn.Sequential:
        if self.stem == "cifar":
            return nn.Sequential(nn.Dropout(self.dropout or 0.0), nn.Linear(width, classes))
        hidden, dropout = HIDDEN * self.width, 0.5 if self.dropout is None else self.dropout
        return nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )  # fmt: skip


def initialise(model: nn.Module) -> None:
    """Draw weights as torchvision does: convolutions He-normal by fan-out, linear layers N(0, 0.01²), biases 0."""
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0, 0.01)
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)

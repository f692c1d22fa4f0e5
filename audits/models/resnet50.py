"""ResNet-50 (He et al., arXiv 1512.03385) with a stem for small or for large images, in torchvision's layout."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import nn

from audits.models.base import MODELS
from audits.models.normalisation import Norm, normalisation
from audits.models.resnet18 import ResNet18

BLOCKS = (3, 4, 6, 3)  # bottlenecks of each stage
EXPANSION = 4  # channels that leave a bottleneck, in units of its inner ones
STEM = ("conv1", "bn1", "relu", "maxpool")


@MODELS.register("resnet50")
@dataclass(frozen=True)
class ResNet50(ResNet18):
    """Sixteen bottlenecks in four stages; ``width`` inner channels in the first stage (64 in the paper).

    Settings as in ``ResNet18``. Parameters have the names and the initial distribution of torchvision's ``resnet50``,
    which ``stem`` "imagenet" is layer for layer: stride 2 lies in the 3×3 convolution ("V1.5"), not in the first 1×1
    one as in the paper.
    """

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            zip(STEM, self._stem(self._channels(shape)), strict=False)  # the stem for small images has no pooling
        )
        width = self.width
        for stage, count in enumerate(BLOCKS):
            inner, blocks = self.width * 2**stage, []
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(width, inner, stride, self.norm))
                width = EXPANSION * inner
            parts[f"layer{stage + 1}"] = nn.Sequential(*blocks)
        parts |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
        parts |= {"dropout": nn.Dropout(self.dropout)} if self.dropout else {}
        parts["fc"] = nn.Linear(width, classes)
        return he_normal(nn.Sequential(parts))


class Bottleneck(nn.Module):
    """Convolutions 1×1 to ``inner`` channels, 3×3 with ``stride``, 1×1 to 4·``inner``, and a shortcut."""

    def __init__(self, width: int, inner: int, stride: int, norm: Norm) -> None:
        super().__init__()
        out = EXPANSION * inner
        self.conv1 = nn.Conv2d(width, inner, 1, bias=False)
        self.bn1 = normalisation(norm, inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = normalisation(norm, inner)
        self.conv3 = nn.Conv2d(inner, out, 1, bias=False)
        self.bn3 = normalisation(norm, out)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or width != out:
            self.downsample = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), normalisation(norm, out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(body(x) + shortcut(x)); shapes (N, width, H, W) → (N, 4·inner, H/stride, W/stride)."""
        body = torch.relu(self.bn1(self.conv1(x)))
        body = torch.relu(self.bn2(self.conv2(body)))
        return torch.relu(self.bn3(self.conv3(body)) + self.downsample(x))


def he_normal(model: nn.Module) -> nn.Module:
    """Draw the weights of all convolutions of ``model`` He-normal by fan-out, as torchvision's ResNets do."""
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return model

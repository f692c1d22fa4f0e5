"""ResNet-18 (He et al., arXiv 1512.03385) with a stem for small or for large images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from audits.errors import BadInput
from audits.models.base import MODELS, Architecture, check_choice, image_shape
from audits.models.normalisation import Norm, normalisation


@MODELS.register("resnet18")
@dataclass(frozen=True)
class ResNet18(Architecture):
    """Eight basic blocks in four stages; ``width`` channels in the first stage (64 in the paper).

    ``stem`` "cifar" is one 3×3 convolution of stride 1 without pooling, as is usual for images of 32×32 and below;
    "imagenet" is the paper's 7×7 convolution of stride 2 and 3×3 pooling of stride 2, layer for layer torchvision's
    ``resnet18``. ``norm`` "group" replaces BatchNorm by GroupNorm, which private training needs. ``dropout``: share of
    the pooled features that training drops before the linear layer; none in the paper.
    """

    recordable: ClassVar[bool] = True

    width: int = 64
    stem: Literal["cifar", "imagenet"] = "cifar"
    norm: Literal["batch", "group"] = "batch"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.width < 1:
            raise BadInput(f"model.settings.width is {self.width}; it must be 1 or more")
        check_choice("stem", self.stem, ("cifar", "imagenet"))
        check_choice("norm", self.norm, ("batch", "group"))
        if not 0 <= self.dropout < 1:
            raise BadInput(f"model.settings.dropout is {self.dropout}; allowed: 0 up to, but not including, 1")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        width = self.width
        parts = self._stem(self._channels(shape))
        for stage in range(4):
            out = self.width * 2**stage
            parts += [
                BasicBlock(width, out, stride=1 if stage == 0 else 2, norm=self.norm),
                BasicBlock(out, out, stride=1, norm=self.norm),
            ]
            width = out
        dropped = [nn.Dropout(self.dropout)] if self.dropout else []
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *dropped, nn.Linear(width, classes))

    def _channels(self, shape: tuple[int, ...]) -> int:
        channels, height, breadth = image_shape(self.name, shape)
        if self.stem == "imagenet" and min(height, breadth) < 32:
            raise BadInput(
                f"model.settings.stem is imagenet, which divides {height}×{breadth} images by 32; "
                "give images of 32×32 or more, or use stem: cifar"
            )
        return channels

    def _stem(self, channels: int) -> list[nn.Module]:
        after = [normalisation(self.norm, self.width), nn.ReLU()]
        if self.stem == "cifar":
            return [nn.Conv2d(channels, self.width, 3, padding=1, bias=False), *after]
        return [nn.Conv2d(channels, self.width, 7, 2, 3, bias=False), *after, nn.MaxPool2d(3, 2, 1)]


class BasicBlock(nn.Module):
    """Two 3×3 convolutions, each normalised, and a shortcut (1×1 convolution where the shape changes)."""

    def __init__(self, width: int, out: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, out, 3, stride, 1, bias=False),
            normalisation(norm, out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            normalisation(norm, out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != out:
            self.shortcut = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), normalisation(norm, out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(body(x) + shortcut(x)); shapes (N, width, H, W) → (N, out, H/stride, W/stride)."""
        return torch.relu(self.body(x) + self.shortcut(x))

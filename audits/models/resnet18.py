"""ResNet-18 (He et al., arXiv 1512.03385) with the small stem used for 32×32 images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from audits.errors import BadInput
from audits.models.registry import Architecture, architecture, image_shape


@architecture("resnet18")
@dataclass(frozen=True)
class ResNet18(Architecture):
    """Eight basic blocks in four stages; ``width`` channels in the first stage (64 in the paper).

    The stem is one 3×3 convolution of stride 1 without pooling, as is usual for images of 32×32 and below.
    """

    width: int = 64

    def __post_init__(self) -> None:
        if self.width < 1:
            raise BadInput(f"model.settings.width is {self.width}; it must be 1 or more")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """See ``Architecture.layers``."""
        channels, _, _ = image_shape(self.name, shape)
        width = self.width
        parts: list[nn.Module] = [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        for stage in range(4):
            out = self.width * 2**stage
            parts += [BasicBlock(width, out, stride=1 if stage == 0 else 2), BasicBlock(out, out, stride=1)]
            width = out
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with BatchNorm and a shortcut (1×1 convolution where the shape changes)."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != out:
            self.shortcut = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(body(x) + shortcut(x)); shapes (N, width, H, W) → (N, out, H/stride, W/stride)."""
        return torch.relu(self.body(x) + self.shortcut(x))
